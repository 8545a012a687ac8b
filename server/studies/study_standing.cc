#include "server/studies/study_standing.h"

#include "absl/strings/str_cat.h"
#include "common/study/study_status.h"
#include "sampler/factory/termination.h"

namespace hpo::server {

HistoryVerdict JudgeHistory(const sampler::History& history, const StudySpec& spec,
                            TrialNumber failures_from) {
  return {.termination = sampler::WhyTerminate(history, spec).value_or(""),
          .target_reached = sampler::WhyTargetReached(history, spec).value_or(""),
          .failure = sampler::WhyFailed(history, spec.budget, failures_from),
          .all_failed = sampler::AllFailed(history)};
}

StudyStanding StandingOf(const StudySpec& spec, const HistoryVerdict& verdict,
                         const StudySituation& situation) {
  const Budget& budget = spec.budget;
  const OpenTrials::Load& open = situation.open;
  const bool target_reached = !verdict.target_reached.empty();
  const std::string& terminated =
      situation.regret_bounded.empty() ? verdict.termination : situation.regret_bounded;
  const bool runs = situation.order == StudyOrder::kRun;
  const bool time_left = !budget.wall_clock || open.wall_clock < *budget.wall_clock;
  const bool trials_left =
      terminated.empty() && (!budget.trials || situation.num_budgeted < *budget.trials);
  const bool ended =
      situation.order == StudyOrder::kStop || verdict.failure.has_value() || target_reached;
  const bool nothing_left = ended || !time_left || (!trials_left && open.num_queued == 0);
  StudyStanding standing{.order = situation.order,
                         .failures_from = situation.failures_from,
                         .failure = verdict.failure,
                         .target_reached = verdict.target_reached};
  standing.termination = target_reached ? verdict.target_reached : terminated;
  standing.hands_out = runs && !verdict.failure && !target_reached && time_left;
  standing.budget_left = trials_left && standing.hands_out;
  if (standing.hands_out) {
    standing.runnable = static_cast<int64_t>(open.num_queued);
    if (standing.budget_left && budget.trials) {
      *standing.runnable += *budget.trials - situation.num_budgeted;
    } else if (standing.budget_left) {
      standing.runnable.reset();
    }
  }
  standing.finished = open.num_held == 0 && nothing_left;
  const bool is_used_up = standing.finished && time_left && runs;
  if (standing.termination.empty() && is_used_up && verdict.all_failed) {
    standing.termination =
        absl::StrCat(kAllFailed, "; to go on: hpo trial retry --failed --study ", spec.name);
  }
  return standing;
}

}  // namespace hpo::server
