// Tested by tests/worker/trainer/program/run_trial_test.cc.
#include "worker/trainer/training/train_loop.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "memory/plan/memory_plan.h"
#include "worker/trainer/base/random_state.h"
#include "worker/trainer/base/trial_log.h"
#include "worker/trainer/data/probe.h"
#include "worker/trainer/data/trial_batches.h"
#include "worker/trainer/device/trial_device.h"
#include "worker/trainer/memory/recovery_policy.h"
#include "worker/trainer/training/backward_barrier.h"
#include "worker/trainer/training/oom_outcome.h"

namespace hpo::trainer {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(500);

int64_t StepsPerEpoch(int64_t rows, int64_t effective_batch) {
  return (rows + effective_batch - 1) / effective_batch;
}

// What the trial's tensors may hold, by its job or by its device.
Bytes LimitOf(const TrainLoopParts& parts) {
  return parts.job.task.limit > Bytes{} ? parts.job.task.limit : parts.memory.Read().total;
}

}  // namespace

TrainLoop::TrainLoop(TrainLoopParts parts, const MemoryPlan& plan)
    : parts_(std::move(parts)),
      state_{.plan = plan,
             .evaluation_rows = plan.micro_batch * parts_.options.config.eval_batch_multiplier,
             .limit = parts_.job.task.limit},
      batches_per_epoch_(StepsPerEpoch(parts_.data.train.num_rows(), plan.effective_batch)),
      total_steps_(parts_.job.task.trainer.epochs * batches_per_epoch_),
      schedule_(parts_.options.learning_rate, parts_.options.warmup_ratio, total_steps_),
      replanner_(parts_.estimate_input, parts_.log.baseline(), LimitOf(parts_),
                 parts_.job.task.memory.allow_checkpointing),
      unread_(parts_.reads_late ? std::optional<StepScalars>(parts_.device) : std::nullopt),
      baseline_(parts_.memory.Read().live),
      growth_watch_(baseline_),
      ahead_([this](const text::BatchRows& rows) { return parts_.task.TokensOf(rows); }) {
  if (plan.precision == Precision::kFloat16) state_.loss_scale.scale = LossScale::kFirst;
}

TrainLoopResult TrainLoop::Run() {
  parts_.task.module().train();
  TakeUp();
  parts_.task.SetExecution(memory::ExecutionOf(parts_.options.config, state_.plan));
  std::optional<Ending> ending = Probe();
  while (!ending.has_value() && state_.epoch < parts_.job.task.trainer.epochs) {
    ending = RunEpoch();
    ++state_.epoch;
    state_.batches_done = 0;
  }
  TrainLoopResult result{.outcome = std::nullopt,
                         .final_plan = state_.plan,
                         .clean = clean_,
                         .best_kept = state_.best_kept};
  if (ending.has_value()) {
    result.outcome = std::move(ending->outcome);
  } else {
    result.outcome = Completed{.metrics = state_.best.value_or(Metrics{}), .model_path = {}};
  }
  return result;
}

std::optional<TrainLoop::Ending> TrainLoop::Probe() {
  if (parts_.job.task.memory.policy == MemoryPolicy::kOff) return std::nullopt;
  const RandomStateKeeper random_state(parts_.device);
  const auto train = [this] {
    parts_.log.StartPeak();
    ComputeClipped(HeaviestBatch(parts_.data.train, state_.plan), state_.plan);
    ClearGradients(parts_.optimizer.groups());
  };
  if (auto ending = RunGuarded(train, [this] { return ShrinkPlan(); })) return ending;
  const auto evaluate = [this] {
    parts_.log.EnterPhase("evaluation");
    const auto batches = text::EvaluationBatches(parts_.data.validation, state_.evaluation_rows);
    parts_.task.Evaluate(std::span(batches).first(1));
  };
  if (auto ending = RunGuarded(evaluate, [this] { return ShrinkEvaluation(); })) return ending;
  parts_.log.EnterPhase("between steps");
  JudgeProbe();
  WatchMemory("probe");
  return std::nullopt;
}

void TrainLoop::JudgeProbe() {
  const Bytes predicted = replanner_.PredictedPeak(state_.plan).value_or(Bytes{});
  const memory::TrialPasses passes =
      PassesOf(parts_.job, parts_.options, parts_.data, parts_.estimate_input.model.max_positions,
               state_.plan);
  const Bytes measured = parts_.log.Probed(
      predicted, replanner_.PredictedReservedPeak(state_.plan, passes).value_or(Bytes{}));
  if (!replanner_.Correct(state_.plan, measured)) return;
  LogWarning(absl::StrFormat("Trial %d - the memory estimate is too low by %s",
                             parts_.job.trial.value, FormatBytes(replanner_.correction())));
  if (parts_.job.task.memory.policy != MemoryPolicy::kPlan || replanner_.Fits(state_.plan)) return;
  if (const auto smaller = replanner_.Smaller(state_.plan)) {
    UsePlan(*smaller, "the probe needed more than predicted");
  }
}

void TrainLoop::TakeUp() {
  if (parts_.checkpoints == nullptr) return;
  std::optional<LoopState> reached = parts_.checkpoints->Restore();
  if (!reached.has_value()) {
    if (parts_.job.attempt.value > 1) parts_.log.Stage("Restarted", 0);
    return;
  }
  if (!KeepsPlanOf(*reached)) {
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

bool TrainLoop::KeepsPlanOf(const LoopState& state) const {
  const Bytes limit = state_.limit;
  const bool no_more_room =
      limit == state.limit || (limit > Bytes{} && (limit < state.limit || state.limit == Bytes{}));
  return no_more_room && state.plan.effective_batch == state_.plan.effective_batch &&
         state.plan.micro_batch <= state_.plan.micro_batch;
}

std::optional<TrainLoop::Ending> TrainLoop::RunEpoch() {
  const std::vector<text::BatchRows> batches = text::TrainingBatches(
      parts_.data.train, parts_.options.DrawOf(state_.plan.effective_batch, state_.epoch));
  while (state_.batches_done < static_cast<int64_t>(batches.size())) {
    if (auto ending = CheckStop()) return ending;
    const auto batch = static_cast<size_t>(state_.batches_done);
    next_ = batch + 1 < batches.size() ? &batches[batch + 1] : nullptr;
    if (auto ending = RunStep(batches[batch])) return ending;
    const int64_t every = parts_.job.task.trainer.measure_every_steps;
    if (every > 0 && state_.step % every == 0) {
      if (auto ending = Measure()) return ending;
    }
    if (auto ending = SaveIfDue()) return ending;
  }
  return state_.measured_step == state_.step ? std::nullopt : Measure();
}

std::optional<TrainLoop::Ending> TrainLoop::SaveIfDue() {
  if (parts_.checkpoints == nullptr || !parts_.checkpoints->Due(state_.step)) return std::nullopt;
  if (auto ending = ReadLosses()) return ending;
  parts_.checkpoints->Save(state_);
  WatchMemory("checkpoint");
  return std::nullopt;
}

double TrainLoop::EpochsDone() const {
  return static_cast<double>(state_.epoch) +
         static_cast<double>(state_.batches_done) / static_cast<double>(batches_per_epoch_);
}

std::optional<TrainLoop::Ending> TrainLoop::RunStep(const text::BatchRows& rows) {
  if (unread_.has_value() && state_.plan.precision != Precision::kFloat16) {
    return RunUnreadStep(rows);
  }
  double loss = 0.0;
  const auto compute = [&] { loss = ComputeClipped(rows, state_.plan); };
  if (auto ending = RunGuarded(compute, [this] { return ShrinkPlan(); })) return ending;
  if (IsSkipped(loss)) return std::nullopt;
  if (!std::isfinite(loss) || !std::isfinite(gradient_norm_)) {
    return Diverged(loss, gradient_norm_, state_.step + 1);
  }
  UpdateParameters();
  CountStep();
  AddLoss(loss);
  if (IsProgressDue()) ReportProgress(loss);
  WatchStep();
  return std::nullopt;
}

std::optional<TrainLoop::Ending> TrainLoop::RunUnreadStep(const text::BatchRows& rows) {
  const auto compute = [&] {
    const torch::Tensor loss =
        AddGradients(parts_.task, BatchOf(rows, state_.plan), parts_.device, parts_.log);
    parts_.log.EnterPhase("gradient clipping");
    unread_->Add(loss,
                 ClipGradientsUnread(parts_.optimizer.groups(), parts_.options.max_grad_norm));
  };
  if (auto ending = RunGuarded(compute, [this] { return ShrinkPlan(); })) return ending;
  UpdateParameters();
  CountStep();
  if (unread_->full() || IsProgressDue()) {
    if (auto ending = ReadLosses()) return ending;
  }
  WatchStep();
  return std::nullopt;
}

std::optional<TrainLoop::Ending> TrainLoop::ReadLosses() {
  if (!unread_.has_value()) return std::nullopt;
  const std::vector<StepScalars::Step> steps = unread_->Take();
  int64_t number = state_.step - static_cast<int64_t>(steps.size());
  for (const StepScalars::Step& step : steps) {
    ++number;
    if (!std::isfinite(step.loss) || !std::isfinite(step.norm)) {
      return Diverged(step.loss, step.norm, number);
    }
    AddLoss(step.loss);
  }
  if (!steps.empty() && IsProgressDue()) ReportProgress(steps.back().loss);
  return std::nullopt;
}

TrainLoop::Ending TrainLoop::Diverged(double loss, double norm, int64_t step) const {
  return {Failed{
      .failure_class = FailureClass::kDiverged,
      .message = absl::StrCat("expected a finite loss, got loss ", loss, " and gradient norm ",
                              norm, " at step ", step, " of ", total_steps_, " with learning rate ",
                              schedule_.At(step - 1))}};
}

void TrainLoop::UpdateParameters() {
  parts_.log.EnterPhase("optimizer step");
  parts_.optimizer.Step(schedule_.At(state_.step));
  ClearGradients(parts_.optimizer.groups());
}

void TrainLoop::WatchStep() {
  WatchMemory("training step");
  WatchThrashing();
  const int64_t every = parts_.options.clear_cache_every;
  if (every > 0 && state_.step % every == 0) parts_.memory.ReleaseCache();
}

void TrainLoop::CountStep() {
  ++state_.step;
  ++state_.batches_done;
}

void TrainLoop::AddLoss(double loss) {
  state_.loss_sum += loss;
  ++state_.loss_steps;
}

// A step of float16 whose gradients, but not its loss, left the type's range.
bool TrainLoop::IsSkipped(double loss) {
  if (state_.plan.precision != Precision::kFloat16 || !std::isfinite(loss)) return false;
  LossScale& scale = state_.loss_scale;
  if (scale.Update(std::isfinite(gradient_norm_)) || scale.scale < LossScale::kSmallest) {
    return false;
  }
  ClearGradients(parts_.optimizer.groups());
  CountStep();
  AddLoss(loss);
  LogInfo(
      absl::StrFormat("Trial %d - step %d skipped: gradients out of float16's range; loss scale "
                      "%g from now on, %d steps skipped so far",
                      parts_.job.trial.value, state_.step, scale.scale, scale.skipped));
  return true;
}

EffectiveBatch TrainLoop::BatchOf(const text::BatchRows& rows, const MemoryPlan& plan) {
  return {.rows = rows,
          .plan = plan,
          .seed = parts_.options.seed,
          .step = state_.step,
          .loss_scale = state_.loss_scale.scale,
          .ahead = &ahead_,
          .next = next_};
}

double TrainLoop::ComputeClipped(const text::BatchRows& rows, const MemoryPlan& plan) {
  const double loss = ComputeGradients(parts_.task, BatchOf(rows, plan), parts_.device, parts_.log);
  parts_.log.EnterPhase("gradient clipping");
  gradient_norm_ = ClipGradients(parts_.optimizer.groups(), parts_.options.max_grad_norm,
                                 state_.loss_scale.scale);
  return loss;
}

std::optional<TrainLoop::Ending> TrainLoop::RunGuarded(absl::FunctionRef<void()> work,
                                                       absl::FunctionRef<bool()> shrink) {
  const auto batch = [&] {
    if (std::exchange(renew_workspaces_, false)) WarmUp(parts_.device);
    work();
  };
  const auto drop = [this] {
    DropFailedBackward(parts_.device);
    ClearGradients(parts_.optimizer.groups());
  };
  while (true) {
    const BatchAttempt attempt = TryBatch(parts_.memory, baseline_, batch, drop);
    if (!attempt.fault.has_value()) return std::nullopt;
    if (auto ending = Recover(attempt, shrink)) return ending;
  }
}

std::optional<TrainLoop::Ending> TrainLoop::Recover(const BatchAttempt& attempt,
                                                    absl::FunctionRef<bool()> shrink) {
  clean_ = clean_ && attempt.clean;
  const std::string phase = parts_.log.phase();
  if (attempt.fault->type == MemoryFaultType::kDeviceLost) {
    return Ending{DeviceLostOutcome(*attempt.fault, phase, state_.step)};
  }
  const Bytes needed = NeededAtLeast(*attempt.fault, attempt.use);
  parts_.log.OutOfMemoryMet(attempt.use, needed,
                            replanner_.PredictedPeak(state_.plan).value_or(Bytes{}), state_.step);
  const OomKind kind = KindOfOom(*attempt.fault, attempt.use, state_.step);
  // The other kinds say nothing about what the plan needs.
  if (kind == OomKind::kConfiguration || kind == OomKind::kLatePeak) {
    replanner_.Correct(state_.plan, needed);
  }
  if (attempt.clean && TakeAction(kind, shrink)) {
    thrash_guard_.StartFrom(parts_.memory.Read().alloc_retries);
    return std::nullopt;
  }
  if (!attempt.fault->certain) {
    return Ending{Failed{.failure_class = FailureClass::kInternal,
                         .message = absl::StrCat("in phase '", phase, "', and nothing smaller ",
                                                 "helps: ", attempt.fault->message)}};
  }
  return Ending{OutOfMemoryOutcome(
      *attempt.fault, attempt.use,
      {.job = parts_.job, .phase = phase, .step = state_.step, .plan = state_.plan},
      parts_.memory.Describe().kind)};
}

bool TrainLoop::TakeAction(OomKind kind, absl::FunctionRef<bool()> shrink) {
  RecoveryCase now{.kind = kind,
                   .can_shrink = parts_.job.task.memory.policy == MemoryPolicy::kPlan,
                   .steps_done = state_.step > 0,
                   .redos = redos_[kind],
                   .workspaces_renewed = workspaces_renewed_};
  RecoveryAction action = DecideRecovery(now);
  if (action == RecoveryAction::kShrink) {
    if (shrink()) return true;
    now.can_shrink = false;
    action = DecideRecovery(now);
  }
  if (action == RecoveryAction::kRedo) {
    ++redos_[kind];
    if (kind == OomKind::kFragmentation) parts_.memory.Relieve(Relief::kExpandableSegments);
    return true;
  }
  if (action != RecoveryAction::kRenewWorkspaces) return false;
  workspaces_renewed_ = true;
  renew_workspaces_ = parts_.memory.Relieve(Relief::kNewWorkspaces);
  return renew_workspaces_;
}

bool TrainLoop::ShrinkPlan() {
  const std::optional<MemoryPlan> smaller = replanner_.Smaller(state_.plan);
  if (!smaller.has_value()) return false;
  UsePlan(*smaller, "out of memory");
  return true;
}

void TrainLoop::UsePlan(const MemoryPlan& plan, const std::string& why) {
  state_.plan = plan;
  parts_.task.SetExecution(memory::ExecutionOf(parts_.options.config, plan));
  state_.evaluation_rows =
      std::min(state_.evaluation_rows,
               state_.plan.micro_batch * parts_.options.config.eval_batch_multiplier);
  parts_.log.Replan(state_.plan, state_.step, why);
}

void TrainLoop::WatchMemory(const char* stage) {
  const auto growth = growth_watch_.After(stage, parts_.memory.Read().live);
  if (growth.has_value()) parts_.log.Growing(*growth, state_.step);
}

void TrainLoop::WatchThrashing() {
  if (!thrash_guard_.AfterStep(parts_.memory.Read().alloc_retries)) return;
  if (parts_.job.task.memory.policy != MemoryPolicy::kPlan) return;
  // In several parts, gradients are live while the next part runs: less at a time can need more.
  const std::optional<Bytes> now = replanner_.PredictedPeak(state_.plan);
  for (auto plan = memory::SmallerPlan(state_.plan); plan.has_value();
       plan = memory::SmallerPlan(*plan)) {
    const std::optional<Bytes> then = replanner_.PredictedPeak(*plan);
    if (now.has_value() && then.has_value() && *then >= *now) continue;
    UsePlan(*plan, "the allocator is thrashing");
    return;
  }
}

bool TrainLoop::ShrinkEvaluation() {
  // Never more rows than there are: half of a surplus would be the same batch again.
  state_.evaluation_rows = std::min(state_.evaluation_rows, parts_.data.validation.num_rows());
  if (state_.evaluation_rows <= 1) return false;
  state_.evaluation_rows /= 2;
  LogWarning(absl::StrFormat("Trial %d - the evaluation after step %d is redone %d rows at a time",
                             parts_.job.trial.value, state_.step, state_.evaluation_rows));
  return true;
}

std::optional<TrainLoop::Ending> TrainLoop::Measure() {
  if (auto ending = ReadLosses()) return ending;
  Metrics metrics;
  const auto evaluate = [&] {
    parts_.log.EnterPhase("evaluation");
    metrics = parts_.task.Evaluate(
        text::EvaluationBatches(parts_.data.validation, state_.evaluation_rows));
  };
  if (auto ending = RunGuarded(evaluate, [this] { return ShrinkEvaluation(); })) return ending;
  evaluated_ = true;
  parts_.log.EnterPhase("between steps");
  WatchMemory("evaluation");
  metrics["train_loss"] = state_.loss_sum / static_cast<double>(state_.loss_steps);
  state_.loss_sum = 0.0;
  state_.loss_steps = 0;
  state_.measured_step = state_.step;
  state_.measurements.push_back({.step = state_.step, .epoch = EpochsDone(), .metrics = metrics});
  parts_.events.Send(MeasurementMessage{state_.measurements.back()});
  LogInfo(absl::StrFormat("Trial %d - step %d of %d: %s %.4f, loss %.4f", parts_.job.trial.value,
                          state_.step, total_steps_, parts_.job.task.objective.metric,
                          metrics.at(parts_.job.task.objective.metric), metrics.at("loss")));
  if (!Improves(metrics)) {
    if (!IsStale()) return std::nullopt;
    LogInfo(
        absl::StrFormat("Trial %d - early stopping after step %d: no better %s in %d measurements",
                        parts_.job.trial.value, state_.step, parts_.job.task.objective.metric,
                        parts_.options.early_stopping));
    return Ending{Completed{.metrics = *state_.best, .model_path = {}}};
  }
  state_.best = std::move(metrics);
  state_.best_kept = parts_.save_best(state_.step);
  WatchMemory("best weights");
  return std::nullopt;
}

bool TrainLoop::IsStale() const {
  if (parts_.options.early_stopping == 0) return false;
  const auto& all = state_.measurements;
  const auto best = std::find_if(all.begin(), all.end(), [this](const Measurement& measurement) {
    return measurement.metrics == *state_.best;
  });
  return all.end() - best > parts_.options.early_stopping;
}

bool TrainLoop::Improves(const Metrics& metrics) const {
  if (!state_.best.has_value()) return true;
  const std::string& name = parts_.job.task.objective.metric;
  return parts_.job.task.objective.direction == Direction::kMaximize
             ? metrics.at(name) > state_.best->at(name)
             : metrics.at(name) < state_.best->at(name);
}

std::optional<TrainLoop::Ending> TrainLoop::CheckStop() {
  const absl::Duration now = SystemClock().Monotonic();
  longest_turn_ = std::max(longest_turn_, now - looked_for_stop_at_.value_or(now));
  looked_for_stop_at_ = now;
  const std::optional<StopRequest> stop = parts_.stops.Poll();
  if (!stop.has_value()) return std::nullopt;
  LogInfo(absl::StrFormat("Trial %d - stopped at step %d: %s", parts_.job.trial.value, state_.step,
                          stop->reason));
  if (stop->reason == "time limit" && state_.step > std::max<int64_t>(state_.measured_step, 0)) {
    if (auto ending = Measure()) return ending;
  }
  if (stop->reason == "pruned" || stop->reason == "time limit") {
    return Ending{StoppedByPruner{
        .pruner = {}, .step = state_.step, .metrics = state_.best.value_or(Metrics{})}};
  }
  if (stop->checkpoint && parts_.checkpoints != nullptr) {
    if (auto ending = ReadLosses()) return ending;
    parts_.checkpoints->Save(state_);
  }
  if (stop->reason == "cancelled") return Ending{Cancelled{.reason = "cancelled on request"}};
  return Ending{};
}

absl::Duration TrainLoop::StopTime() const {
  // Before the first one also what an evaluation may take, by what a step takes.
  const int64_t steps = evaluated_ ? 1
                                   : 1 + StepsPerEpoch(parts_.data.validation.num_rows(),
                                                       state_.plan.effective_batch);
  return steps * longest_turn_ +
         (parts_.checkpoints == nullptr ? absl::ZeroDuration() : parts_.checkpoints->SaveTime());
}

bool TrainLoop::IsProgressDue() const {
  return state_.step <= 1 || SystemClock().Monotonic() - last_progress_ >= kProgressInterval;
}

void TrainLoop::ReportProgress(double loss) {
  last_progress_ = SystemClock().Monotonic();
  parts_.events.Send(ProgressMessage{
      .step = state_.step, .total_steps = total_steps_, .loss = loss, .stop_time = StopTime()});
}

}  // namespace hpo::trainer
