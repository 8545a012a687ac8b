#include "sampler/api/failures.h"

#include "absl/strings/str_cat.h"

namespace hpo::sampler {
namespace {

constexpr int64_t kFewestForShare = 10;

struct Counts {
  int64_t failed = 0;
  int64_t ended = 0;
  bool works = false;
  TrialNumber last;
};

bool ShowsThatTheProgramWorks(const HistoryTrial& trial) {
  return trial.state == TrialState::kCompleted ||
         (trial.state == TrialState::kPruned && !trial.intermediate.empty());
}

// Nothing beyond the first trial that works, where only those before it count: each end of a trial
// asks, and a history may hold many thousands.
Counts CountFrom(const History& history, TrialNumber from, bool share_counts) {
  Counts counts;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.imported) continue;
    counts.works |= ShowsThatTheProgramWorks(trial);
    if (counts.works && !share_counts) return counts;
    if (number < from) continue;
    if (IsFinished(trial)) ++counts.ended;
    if (trial.state != TrialState::kFailed) continue;
    ++counts.ended;
    ++counts.failed;
    counts.last = number;
  }
  return counts;
}

}  // namespace

std::optional<TooManyFailures> WhyFailed(const History& history, const Budget& budget,
                                         TrialNumber from) {
  if (budget.failures_in_a_row == 0 && !budget.failed_share) return std::nullopt;
  const Counts counts = CountFrom(history, from, budget.failed_share.has_value());
  if (budget.failures_in_a_row > 0 && !counts.works && counts.failed >= budget.failures_in_a_row) {
    return TooManyFailures{.why = absl::StrCat(counts.failed,
                                               " trials failed before one completed or was pruned "
                                               "(budget.failures_in_a_row: ",
                                               budget.failures_in_a_row, ")"),
                           .last = counts.last};
  }
  if (budget.failed_share && counts.ended >= kFewestForShare &&
      static_cast<double>(counts.failed) >
          *budget.failed_share * static_cast<double>(counts.ended)) {
    return TooManyFailures{
        .why = absl::StrCat(counts.failed, " of ", counts.ended,
                            " trials failed (budget.failed_share: ", *budget.failed_share, ")"),
        .last = counts.last};
  }
  return std::nullopt;
}

bool AllFailed(const History& history) {
  bool any = false;
  for (const auto& [number, trial] : history.trials()) {
    if (trial.imported) continue;
    if (IsFinished(trial)) return false;
    any = any || trial.state == TrialState::kFailed;
  }
  return any;
}

}  // namespace hpo::sampler
