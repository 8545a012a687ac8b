// Tested by tests/worker/trainer/program/run_trial_test.cc.
#include "worker/trainer/training/train_loop.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "memory/plan/memory_plan.h"
#include "worker/trainer/base/random_state.h"
#include "worker/trainer/base/trial_log.h"
#include "worker/trainer/data/probe.h"

namespace hpo::trainer {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(500);

int64_t StepsPerEpoch(int64_t rows, int64_t effective_batch) {
  return (rows + effective_batch - 1) / effective_batch;
}

}  // namespace

TrainLoop::TrainLoop(TrainLoopParts parts, const MemoryPlan& plan)
    : parts_(std::move(parts)),
      state_{.plan = plan,
             .evaluation_rows = plan.micro_batch * parts_.options.config.eval_batch_multiplier,
             .limit = parts_.job.task.limit},
      batches_per_epoch_(StepsPerEpoch(parts_.data.train.num_rows(), plan.effective_batch)),
      total_steps_(parts_.job.task.trainer.epochs * batches_per_epoch_),
      steps_(parts_, state_, total_steps_),
      memory_(parts_, state_) {
  if (plan.precision == Precision::kFloat16) state_.loss_scale.scale = LossScale::kFirst;
}

TrainLoopResult TrainLoop::Run() {
  parts_.task.module().train();
  Resume();
  parts_.task.SetExecution(memory::ExecutionOf(parts_.options.config, state_.plan));
  TrainState now;
  while (now.action != TrainAction::kEnd) {
    const TrainEvent event = Do(now.action);
    now = NextState(now, Place(), event);
  }
  return {.outcome = OutcomeOf(now.end, state_, std::move(failure_)),
          .final_plan = state_.plan,
          .clean = memory_.clean(),
          .best_kept = state_.best_kept};
}

void TrainLoop::Resume() {
  if (parts_.checkpoints == nullptr) return;
  std::optional<LoopState> reached = parts_.checkpoints->Restore();
  if (!reached.has_value()) {
    if (parts_.job.attempt.value > 1) parts_.log.Stage("Restarted", 0);
    return;
  }
  if (!KeepsPlan(*reached, state_)) {
    reached->plan = state_.plan;
    reached->evaluation_rows = state_.evaluation_rows;
    reached->limit = state_.limit;
  }
  state_ = *std::move(reached);
  parts_.log.Stage("Resumed", state_.step);
  // A supervisor counts an attempt's measurements from its beginning.
  for (const Measurement& measurement : state_.measurements) {
    parts_.events.Send(MeasurementMessage{measurement});
  }
}

TrainPlace TrainLoop::Place() const {
  const int64_t every = parts_.job.task.trainer.measure_every_steps;
  const TrialCheckpoints* const checkpoints = parts_.checkpoints;
  TrainPlace place;
  place.epochs_left = state_.epoch < parts_.job.task.trainer.epochs;
  place.batches_left = state_.batches_done < batches_per_epoch_;
  place.is_unmeasured = state_.step > std::max<int64_t>(state_.measured_step, 0);
  place.measure_due = every > 0 && state_.step % every == 0;
  place.save_due = checkpoints != nullptr && checkpoints->Due(state_.step);
  place.may_save = checkpoints != nullptr;
  return place;
}

TrainEvent TrainLoop::Do(TrainAction action) {
  switch (action) {
    case TrainAction::kProbe:
      return Probe();
    case TrainAction::kLookForStop:
      return LookForStop();
    case TrainAction::kTrain:
      return Train();
    case TrainAction::kMeasure:
    case TrainAction::kMeasureEpoch:
    case TrainAction::kMeasureForStop:
      return Measure();
    case TrainAction::kSave:
    case TrainAction::kSaveForStop:
      return Save();
    case TrainAction::kTurnEpoch:
      ++state_.epoch;
      state_.batches_done = 0;
      break;
    case TrainAction::kEnd:
      break;
  }
  return ActionDone{};
}

TrainEvent TrainLoop::Fail(std::optional<TrialOutcome> failure) {
  failure_ = std::move(failure);
  return ActionFailed{};
}

TrainEvent TrainLoop::Probe() {
  if (parts_.job.task.memory.policy == MemoryPolicy::kOff) return ActionDone{};
  const RandomStateKeeper random_state(parts_.device);
  const auto train = [this] {
    parts_.log.StartPeak();
    steps_.Probe(HeaviestBatch(parts_.data.train, state_.plan));
    ClearGradients(parts_.optimizer.groups());
  };
  if (auto failure = memory_.Train(train)) return Fail(std::move(failure));
  const auto evaluate = [this] {
    const auto batches = text::EvaluationBatches(parts_.data.validation, state_.evaluation_rows);
    parts_.task.Evaluate(std::span(batches).first(1));
  };
  if (auto failure = memory_.Evaluate(evaluate)) return Fail(std::move(failure));
  memory_.JudgeProbe();
  memory_.Watch("probe");
  return ActionDone{};
}

TrainEvent TrainLoop::LookForStop() {
  const absl::Duration now = SystemClock().Monotonic();
  longest_turn_ = std::max(longest_turn_, now - looked_for_stop_at_.value_or(now));
  looked_for_stop_at_ = now;
  std::optional<StopRequest> stop = parts_.stops.Poll();
  if (!stop.has_value()) return ActionDone{};
  LogInfo(absl::StrFormat("Trial %d - stopped at step %d: %s", parts_.job.trial.value, state_.step,
                          stop->reason));
  return *std::move(stop);
}

TrainEvent TrainLoop::Train() {
  if (std::exchange(drawn_epoch_, state_.epoch) != state_.epoch) {
    batches_ = text::TrainingBatches(
        parts_.data.train, parts_.options.DrawOf(state_.plan.effective_batch, state_.epoch));
  }
  const std::span<const text::BatchRows> batches =
      std::span(batches_).subspan(static_cast<size_t>(state_.batches_done));
  const text::BatchRows* const next = batches.size() > 1 ? &batches[1] : nullptr;
  const auto compute = [&] { steps_.Compute(batches[0], next); };
  if (auto failure = memory_.Train(compute)) return Fail(std::move(failure));
  if (auto failure = steps_.Apply()) return Fail(std::move(failure));
  if (steps_.skipped()) return ActionDone{};
  if (steps_.full() || IsProgressDue()) {
    if (auto failure = ReadLosses()) return Fail(std::move(failure));
  }
  memory_.WatchStep();
  return ActionDone{};
}

TrainEvent TrainLoop::Save() {
  if (auto failure = ReadLosses()) return Fail(std::move(failure));
  parts_.checkpoints->Save(state_);
  memory_.Watch("checkpoint");
  return ActionDone{};
}

TrainEvent TrainLoop::Measure() {
  if (auto failure = ReadLosses()) return Fail(std::move(failure));
  Metrics metrics;
  const auto evaluate = [&] {
    metrics = parts_.task.Evaluate(
        text::EvaluationBatches(parts_.data.validation, state_.evaluation_rows));
  };
  if (auto failure = memory_.Evaluate(evaluate)) return Fail(std::move(failure));
  evaluated_ = true;
  memory_.Watch("evaluation");
  Record(std::move(metrics));
  const Objective& objective = parts_.job.task.objective;
  const Metrics& now = state_.measurements.back().metrics;
  if (Improves(now, state_.best, objective)) {
    state_.best = now;
    state_.best_kept = parts_.save_best(state_.step);
    memory_.Watch("best weights");
    return ActionDone{};
  }
  const int64_t patience = parts_.options.early_stopping;
  if (!IsStale(state_.measurements, *state_.best, patience)) return ActionDone{};
  LogInfo(
      absl::StrFormat("Trial %d - early stopping after step %d: no better %s in %d measurements",
                      parts_.job.trial.value, state_.step, objective.metric, patience));
  return NothingBetter{};
}

void TrainLoop::Record(Metrics metrics) {
  metrics["train_loss"] = state_.loss_sum / static_cast<double>(state_.loss_steps);
  state_.loss_sum = 0.0;
  state_.loss_steps = 0;
  state_.measured_step = state_.step;
  const double epochs =
      static_cast<double>(state_.epoch) +
      static_cast<double>(state_.batches_done) / static_cast<double>(batches_per_epoch_);
  state_.measurements.push_back(
      {.step = state_.step, .epoch = epochs, .metrics = std::move(metrics)});
  const Measurement& measured = state_.measurements.back();
  parts_.events.Send(MeasurementMessage{measured});
  const std::string& metric = parts_.job.task.objective.metric;
  LogInfo(absl::StrFormat("Trial %d - step %d of %d: %s %.4f, loss %.4f", parts_.job.trial.value,
                          state_.step, total_steps_, metric, measured.metrics.at(metric),
                          measured.metrics.at("loss")));
}

std::optional<TrialOutcome> TrainLoop::ReadLosses() {
  if (auto failure = steps_.ReadLosses()) return failure;
  const std::optional<double> loss = steps_.TakeLoss();
  if (!loss.has_value() || !IsProgressDue()) return std::nullopt;
  last_progress_ = SystemClock().Monotonic();
  parts_.events.Send(ProgressMessage{
      .step = state_.step, .total_steps = total_steps_, .loss = *loss, .stop_time = StopTime()});
  return std::nullopt;
}

bool TrainLoop::IsProgressDue() const {
  return state_.step <= 1 || SystemClock().Monotonic() - last_progress_ >= kProgressInterval;
}

absl::Duration TrainLoop::StopTime() const {
  // Before the first one also what an evaluation may take, by what a step takes.
  const int64_t steps = evaluated_ ? 1
                                   : 1 + StepsPerEpoch(parts_.data.validation.num_rows(),
                                                       state_.plan.effective_batch);
  return steps * longest_turn_ +
         (parts_.checkpoints == nullptr ? absl::ZeroDuration() : parts_.checkpoints->SaveTime());
}

}  // namespace hpo::trainer
