#include "worker/trainer/training/train_course.h"

#include <algorithm>
#include <cmath>

namespace hpo::trainer {
namespace {

TrainState Ended(TrainEnd end) { return {.action = TrainAction::kEnd, .end = end}; }

bool KeepsResult(const std::string& stop_reason) {
  return stop_reason == "pruned" || stop_reason == "time limit";
}

TrainState Stopped(const std::string& reason) {
  if (KeepsResult(reason)) return Ended(TrainEnd::kPruned);
  return Ended(reason == "cancelled" ? TrainEnd::kCancelled : TrainEnd::kUnfinished);
}

TrainState AfterStop(const StopRequest& stop, const TrainPlace& place) {
  if (stop.reason == "time limit" && place.is_unmeasured) {
    return {.action = TrainAction::kMeasureForStop, .stop_reason = stop.reason};
  }
  if (!KeepsResult(stop.reason) && stop.checkpoint && place.may_save) {
    return {.action = TrainAction::kSaveForStop, .stop_reason = stop.reason};
  }
  return Stopped(stop.reason);
}

TrainState BetweenBatches(const TrainPlace& place) {
  if (!place.epochs_left) return Ended(TrainEnd::kCompleted);
  if (place.batches_left) return {.action = TrainAction::kLookForStop};
  return {.action = place.is_unmeasured ? TrainAction::kMeasureEpoch : TrainAction::kTurnEpoch};
}

TrainState AfterDone(const TrainState& state, const TrainPlace& place) {
  switch (state.action) {
    case TrainAction::kLookForStop:
      return {.action = TrainAction::kTrain};
    case TrainAction::kTrain:
      if (place.measure_due) return {.action = TrainAction::kMeasure};
      [[fallthrough]];
    case TrainAction::kMeasure:
      if (place.save_due) return {.action = TrainAction::kSave};
      [[fallthrough]];
    case TrainAction::kProbe:
    case TrainAction::kSave:
    case TrainAction::kTurnEpoch:
      return BetweenBatches(place);
    case TrainAction::kMeasureEpoch:
      return {.action = TrainAction::kTurnEpoch};
    case TrainAction::kMeasureForStop:
    case TrainAction::kSaveForStop:
      return Stopped(state.stop_reason);
    case TrainAction::kEnd:
      break;
  }
  return state;
}

}  // namespace

TrainState NextState(const TrainState& state, const TrainPlace& place, const TrainEvent& event) {
  if (std::holds_alternative<ActionFailed>(event)) return Ended(TrainEnd::kFailed);
  if (std::holds_alternative<NothingBetter>(event)) return Ended(TrainEnd::kCompleted);
  if (const auto* stop = std::get_if<StopRequest>(&event)) return AfterStop(*stop, place);
  return AfterDone(state, place);
}

std::optional<TrialOutcome> OutcomeOf(TrainEnd end, const LoopState& reached,
                                      std::optional<TrialOutcome> failure) {
  const Metrics best = reached.best.value_or(Metrics{});
  switch (end) {
    case TrainEnd::kCompleted:
      return Completed{.metrics = best, .model_path = {}};
    case TrainEnd::kPruned:
      return StoppedByPruner{.pruner = {}, .step = reached.step, .metrics = best};
    case TrainEnd::kCancelled:
      return Cancelled{.reason = "cancelled on request"};
    case TrainEnd::kUnfinished:
      return std::nullopt;
    case TrainEnd::kFailed:
      break;
  }
  return failure;
}

StepVerdict JudgeStep(double loss, double norm, LossScale* scale) {
  const bool has_scale = scale != nullptr && std::isfinite(loss);
  if (has_scale && !scale->Update(std::isfinite(norm)) && scale->scale >= LossScale::kSmallest) {
    return StepVerdict::kSkip;
  }
  return std::isfinite(loss) && std::isfinite(norm) ? StepVerdict::kTake : StepVerdict::kDiverged;
}

bool Improves(const Metrics& now, const std::optional<Metrics>& best, const Objective& objective) {
  if (!best.has_value()) return true;
  const double value = now.at(objective.metric);
  const double so_far = best->at(objective.metric);
  return objective.direction == Direction::kMaximize ? value > so_far : value < so_far;
}

bool IsStale(const std::vector<Measurement>& all, const Metrics& best, int64_t patience) {
  if (patience == 0) return false;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&best](const Measurement& one) { return one.metrics == best; });
  return all.end() - found > patience;
}

bool KeepsPlan(const LoopState& reached, const LoopState& now) {
  const Bytes limit = now.limit;
  const bool no_more_room =
      limit == reached.limit ||
      (limit > Bytes{} && (limit < reached.limit || reached.limit == Bytes{}));
  return no_more_room && reached.plan.effective_batch == now.plan.effective_batch &&
         reached.plan.micro_batch <= now.plan.micro_batch;
}

}  // namespace hpo::trainer
