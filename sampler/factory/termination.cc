#include "sampler/factory/termination.h"

#include "absl/strings/str_cat.h"
#include "common/study/study_status.h"
#include "sampler/api/progress.h"
#include "sampler/simple/grid_sampler.h"
#include "sampler/space/finite_space.h"

namespace hpo::sampler {
namespace {

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

std::optional<std::string> WhyTargetReached(const History& history, const StudySpec& study) {
  if (!study.budget.target.has_value()) return std::nullopt;
  const Objective& objective = study.objectives.front();
  const bool minimize = objective.direction == Direction::kMinimize;
  const double target = *study.budget.target;
  for (const auto& [number, trial] : history.trials()) {
    if (!IsFeasible(trial) || trial.losses.empty()) continue;
    const double value = minimize ? trial.losses.front() : -trial.losses.front();
    if (minimize ? value > target : value < target) continue;
    return absl::StrCat("trial #", number.value, " reached the target: ", objective.metric, " ",
                        value, ", at ", minimize ? "most " : "least ", target,
                        "; to go on: hpo study extend ", study.name, " --target none");
  }
  return std::nullopt;
}

std::optional<std::string> WhyTerminate(const History& history, const StudySpec& study) {
  const bool is_grid = study.sampler.type == "grid";
  if ((is_grid && GridIsUsedUp(history, study.space)) || SpaceIsUsedUp(history, study.space)) {
    return absl::StrCat(kSpaceUsedUp, "; to go on: hpo study edit ", study.name,
                        " FILE, with more values in FILE");
  }
  return WhyNoProgress(history, study.budget);
}

}  // namespace hpo::sampler
