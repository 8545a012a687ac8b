// What a training does next: (state, event) -> state. The loop does the action of the state; what
// came of it is the next event.
// Pure; free of torch. An action recovers from out-of-memory errors itself, by
// memory/recovery_policy.h; an error that it cannot recover from is an ActionFailed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/protocol/trainer_protocol.h"
#include "common/study/study.h"
#include "common/study/trial.h"
#include "worker/trainer/checkpoints/loop_state.h"
#include "worker/trainer/optimizers/loss_scale.h"

namespace hpo::trainer {

enum class TrainAction {
  kProbe,           // the heaviest batch, thrown away
  kLookForStop,     // between two batches
  kTrain,           // one effective batch
  kMeasure,         // because measure_every_steps is reached
  kSave,            // because a checkpoint is due
  kMeasureEpoch,    // at its end
  kTurnEpoch,       // to the next
  kMeasureForStop,  // what is not measured yet, as the trial's time is over
  kSaveForStop,     // as the stop asks for it
  kEnd,
};

// How a training ends.
enum class TrainEnd {
  kCompleted,   // with the best measurement
  kPruned,      // StoppedByPruner, with the best measurement
  kCancelled,   // on request
  kUnfinished,  // without an outcome: drained, preempted, or the lease is lost
  kFailed,      // with the outcome of the action that failed
};

struct TrainState {
  TrainAction action = TrainAction::kProbe;  // what is being done
  std::string stop_reason = {};              // of the stop that is obeyed
  TrainEnd end = TrainEnd::kCompleted;       // with kEnd
  bool operator==(const TrainState&) const = default;
};

// Where the training stands after the action.
struct TrainPlace {
  bool epochs_left = true;    // an epoch runs
  bool batches_left = true;   // of it
  bool is_unmeasured = true;  // there are steps after the last measurement
  bool measure_due = false;   // by the number of steps
  bool save_due = false;      // by steps or time
  bool may_save = true;       // there is a place for checkpoints
};

struct ActionDone {};     // kLookForStop: there is no stop; kSave: also where it did not work
struct NothingBetter {};  // measured, and it is time to stop early
struct ActionFailed {};   // out of memory, diverged, ...

using TrainEvent = std::variant<ActionDone, NothingBetter, ActionFailed, StopRequest>;

TrainState NextState(const TrainState& state, const TrainPlace& place, const TrainEvent& event);

// The outcome of a training that has `reached` this; `failure`: the failed action's.
std::optional<TrialOutcome> OutcomeOf(TrainEnd end, const LoopState& reached,
                                      std::optional<TrialOutcome> failure);

enum class StepVerdict { kTake, kSkip, kDiverged };

// What becomes of a step with this loss and gradient norm. `scale`: float16's, which follows; null:
// another precision. Float16 skips gradients out of its range while a smaller scale may help.
StepVerdict JudgeStep(double loss, double norm, LossScale* scale);

// Whether `now` is the best so far by the objective.
bool Improves(const Metrics& now, const std::optional<Metrics>& best, const Objective& objective);

// Whether more than `patience` measurements in a row, up to the last, are no better than `best`,
// which is one of them; never with 0.
bool IsStale(const std::vector<Measurement>& all, const Metrics& best, int64_t patience);

// Whether an attempt that starts with `now` keeps the plan that an earlier one had reached: it was
// found under a limit that is no larger than this one's.
bool KeepsPlan(const LoopState& reached, const LoopState& now);

}  // namespace hpo::trainer
