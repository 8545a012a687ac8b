#include "sampler/tpe/trial_loss.h"

namespace hpo::sampler {

TrialLesson LessonOf(const HistoryTrial& trial, Bytes capacity, MemoryPolicy policy) {
  if (MemoryViolation(trial, capacity, policy) > 0.0) return TrialLesson::kOverMemory;
  if (EndedByMemory(trial)) return TrialLesson::kNothing;
  if (trial.state == TrialState::kFailed) return TrialLesson::kFailed;
  if (trial.violation > 0.0) return TrialLesson::kViolating;
  if (trial.state == TrialState::kCompleted) return TrialLesson::kFeasible;
  if (trial.state == TrialState::kPruned) return TrialLesson::kStopped;
  return trial.state == TrialState::kRunning ? TrialLesson::kRunning : TrialLesson::kNothing;
}

bool TeachesQuality(TrialLesson lesson) {
  return lesson == TrialLesson::kFeasible || lesson == TrialLesson::kStopped ||
         lesson == TrialLesson::kViolating;
}

// Whether a trial came as far as the loss would have shown, and did not suffer it.
bool TrialLoss::IsSpared(TrialLesson by) const {
  if (lesson == TrialLesson::kViolating) return by == TrialLesson::kFeasible;
  return TeachesQuality(by);
}

// Violations only if something is feasible: until then the least violating trials, which are good
// ones by the split, would speak against what is near them as much as all others.
bool TrialLoss::Counts() const {
  if (num_lost == 0) return false;
  return lesson != TrialLesson::kViolating || ratio.below().num_observations() > 0;
}

void TrialLoss::Learn(const ModelSpace& space, const HistoryTrial& trial, TrialLesson before,
                      TrialLesson now) {
  if (before == now) return;
  num_lost += int{now == lesson} - int{before == lesson};
  if (!modelled) return;
  const int64_t number = trial.number.value;
  if (IsSpared(before)) ratio.RemoveBelow(number);
  if (before == lesson) ratio.RemoveAbove(number);
  if (IsSpared(now)) ratio.AddBelow(number, space.Encode(trial.params));
  if (now == lesson) ratio.AddAbove(number, space.Encode(trial.params));
}

}  // namespace hpo::sampler
