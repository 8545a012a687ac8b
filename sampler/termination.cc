#include "sampler/termination.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sampler/grid_sampler.h"

namespace hpo {
namespace {

using Losses = std::vector<double>;

bool AtLeastAsGood(const Losses& a, const Losses& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
  }
  return true;
}

// Whether `losses` improve on `best`, the losses that no other is as good as; they join it.
bool Improve(const Losses& losses, std::vector<Losses>& best) {
  const bool finite =
      std::all_of(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  if (losses.empty() || !finite) return false;
  for (const Losses& other : best) {
    if (AtLeastAsGood(other, losses)) return false;
  }
  std::erase_if(best, [&](const Losses& other) { return AtLeastAsGood(losses, other); });
  best.push_back(losses);
  return true;
}

// Which trials improve a study, told one after another: before any is feasible, by coming nearer.
class Progress {
 public:
  bool Improves(const HistoryTrial& trial) {
    if (trial.state != TrialState::kCompleted) return false;
    if (IsFeasible(trial)) return Improve(trial.losses, best_);
    if (!best_.empty() || !(trial.violation < least_violation_)) return false;
    least_violation_ = trial.violation;
    return true;
  }

 private:
  std::vector<Losses> best_;  // of the feasible ones
  double least_violation_ = std::numeric_limits<double>::infinity();
};

std::optional<std::string> WhyNoProgress(const History& history, const Budget& budget) {
  if (!budget.no_progress.has_value()) return std::nullopt;
  Progress progress;
  std::optional<TrialNumber> improved;
  int64_t num_since = 0;
  for (const auto& [number, trial] : history.trials()) {
    if (progress.Improves(trial)) {
      improved = number;
      num_since = 0;
    } else if (trial.budgeted && IsFinished(trial)) {
      ++num_since;
    }
  }
  if (!improved.has_value() || num_since < *budget.no_progress) return std::nullopt;
  return absl::StrCat("no progress in the ", num_since, " trials since trial ", improved->value,
                      "; to go on, raise budget.no_progress in its file");
}

}  // namespace

std::optional<std::string> WhyTerminate(const History& history, const StudySpec& study) {
  if (study.sampler.type == "grid" && GridIsUsedUp(history, study.space)) {
    return "every configuration of the grid has been tried";
  }
  return WhyNoProgress(history, study.budget);
}

}  // namespace hpo
