#include "worker/trainer/training/train_loop.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/memory/memory_plan.h"
#include "worker/trainer/random_state.h"
#include "worker/trainer/training/backward_barrier.h"
#include "worker/trainer/training/effective_batch.h"
#include "worker/trainer/training/evaluation.h"
#include "worker/trainer/training/oom_outcome.h"
#include "worker/trainer/training/probe.h"
#include "worker/trainer/trial_device.h"
#include "worker/trainer/trial_log.h"

namespace hpo {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(500);

int64_t StepsPerEpoch(int64_t rows, int64_t effective_batch) {
  return (rows + effective_batch - 1) / effective_batch;
}

// What the trial's tensors may hold, by its job or by its device.
Bytes LimitOf(const TrainLoopParts& parts) {
  return parts.job.limit > Bytes{} ? parts.job.limit : parts.memory.Read().total;
}

}  // namespace

TrainLoop::TrainLoop(TrainLoopParts parts, const MemoryPlan& plan)
    : parts_(std::move(parts)),
      plan_(plan),
      evaluation_rows_(plan.micro_batch * parts_.options.config.eval_batch_multiplier),
      total_steps_(parts_.job.epochs *
                   StepsPerEpoch(parts_.data.train.num_rows(), plan.effective_batch)),
      schedule_(parts_.options.learning_rate, parts_.options.warmup_ratio, total_steps_),
      replanner_(parts_.estimate_input, parts_.log.baseline(), LimitOf(parts_)),
      baseline_(parts_.memory.Read().live),
      growth_watch_(baseline_) {}

TrainLoopResult TrainLoop::Run() {
  parts_.model.train();
  std::optional<Ending> ending = Probe();
  for (int64_t epoch = 0; epoch < parts_.job.epochs && !ending.has_value(); ++epoch) {
    ending = RunEpoch(epoch);
  }
  TrainLoopResult result{.outcome = std::nullopt, .final_plan = plan_, .clean = clean_};
  if (ending.has_value()) {
    result.outcome = std::move(ending->outcome);
  } else {
    result.outcome = Completed{.metrics = best_.value_or(Metrics{}), .model_path = {}};
  }
  return result;
}

std::optional<TrainLoop::Ending> TrainLoop::Probe() {
  if (parts_.job.policy == MemoryPolicy::kOff) return std::nullopt;
  const RandomStateKeeper random_state(parts_.device);
  const auto train = [this] {
    parts_.log.StartPeak();
    ComputeClipped(HeaviestBatch(parts_.data.train, plan_), plan_);
    ClearGradients(parts_.optimizer.groups());
  };
  if (auto ending = RunGuarded(train, [this] { return ShrinkPlan(); })) return ending;
  const auto evaluate = [this] {
    parts_.log.EnterPhase("evaluation");
    const auto batches = EvaluationBatches(parts_.data.validation, evaluation_rows_);
    Evaluate(parts_.model, parts_.data.validation, std::span(batches).first(1),
             parts_.max_positions, parts_.device);
  };
  if (auto ending = RunGuarded(evaluate, [this] { return ShrinkEvaluation(); })) return ending;
  parts_.log.EnterPhase("between steps");
  JudgeProbe();
  WatchMemory("probe");
  return std::nullopt;
}

void TrainLoop::JudgeProbe() {
  const Bytes predicted = replanner_.PredictedPeak(plan_).value_or(Bytes{});
  const Bytes measured = parts_.log.Probed(predicted);
  if (!replanner_.Correct(plan_, measured)) return;
  LogWarning(absl::StrFormat("Trial %d - the estimate is short by %s", parts_.job.trial.value,
                             FormatBytes(replanner_.correction())));
  if (parts_.job.policy != MemoryPolicy::kPlan || replanner_.Fits(plan_)) return;
  if (const auto smaller = replanner_.Smaller(plan_)) UsePlan(*smaller, "by the probe");
}

std::optional<TrainLoop::Ending> TrainLoop::RunEpoch(int64_t epoch) {
  const std::vector<BatchRows> batches =
      TrainingBatches(parts_.data.train, plan_.effective_batch, parts_.options.seed, epoch);
  for (size_t i = 0; i < batches.size(); ++i) {
    if (auto ending = CheckStop()) return ending;
    if (auto ending = RunStep(batches[i])) return ending;
    epoch_ = static_cast<double>(epoch) +
             static_cast<double>(i + 1) / static_cast<double>(batches.size());
    const int64_t every = parts_.job.measure_every_steps;
    if (every > 0 && step_ % every == 0) {
      if (auto ending = Measure()) return ending;
    }
  }
  return measured_step_ == step_ ? std::nullopt : Measure();
}

std::optional<TrainLoop::Ending> TrainLoop::RunStep(const BatchRows& rows) {
  double loss = 0.0;
  const auto compute = [&] { loss = ComputeClipped(rows, plan_); };
  if (auto ending = RunGuarded(compute, [this] { return ShrinkPlan(); })) return ending;
  if (!std::isfinite(loss) || !std::isfinite(gradient_norm_)) {
    return Ending{Failed{
        .failure_class = FailureClass::kDiverged,
        .message = absl::StrCat("expected a finite loss, got loss ", loss, " and gradient norm ",
                                gradient_norm_, " at step ", step_ + 1, " of ", total_steps_,
                                " with learning rate ", schedule_.At(step_))}};
  }
  parts_.log.EnterPhase("optimizer step");
  parts_.optimizer.Step(schedule_.At(step_));
  ClearGradients(parts_.optimizer.groups());
  ++step_;
  loss_sum_ += loss;
  ++loss_steps_;
  ReportProgress(loss);
  WatchMemory("training step");
  WatchThrashing();
  return std::nullopt;
}

double TrainLoop::ComputeClipped(const BatchRows& rows, const MemoryPlan& plan) {
  const EffectiveBatch batch{.data = parts_.data.train,
                             .rows = rows,
                             .plan = plan,
                             .seed = parts_.options.seed,
                             .step = step_,
                             .max_positions = parts_.max_positions};
  const double loss = ComputeGradients(parts_.model, batch, parts_.device, parts_.log);
  parts_.log.EnterPhase("gradient clipping");
  gradient_norm_ = ClipGradients(parts_.optimizer.groups(), parts_.options.max_grad_norm);
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
    return Ending{DeviceLostOutcome(*attempt.fault, phase, step_)};
  }
  const Bytes needed = NeededAtLeast(*attempt.fault, attempt.use);
  parts_.log.OutOfMemoryMet(attempt.use, needed, replanner_.PredictedPeak(plan_).value_or(Bytes{}),
                            step_);
  const OomKind kind = KindOfOom(*attempt.fault, attempt.use, step_);
  // The other kinds say nothing about what the plan needs.
  if (kind == OomKind::kConfiguration || kind == OomKind::kLatePeak) {
    replanner_.Correct(plan_, needed);
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
  return Ending{
      OutOfMemoryOutcome(*attempt.fault, attempt.use,
                         {.job = parts_.job, .phase = phase, .step = step_, .plan = plan_},
                         parts_.memory.Describe().kind)};
}

bool TrainLoop::TakeAction(OomKind kind, absl::FunctionRef<bool()> shrink) {
  RecoveryCase now{.kind = kind,
                   .can_shrink = parts_.job.policy == MemoryPolicy::kPlan,
                   .steps_done = step_ > 0,
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
  const std::optional<MemoryPlan> smaller = replanner_.Smaller(plan_);
  if (!smaller.has_value()) return false;
  UsePlan(*smaller, "out of memory");
  return true;
}

void TrainLoop::UsePlan(const MemoryPlan& plan, const std::string& why) {
  plan_ = plan;
  evaluation_rows_ =
      std::min(evaluation_rows_, plan_.micro_batch * parts_.options.config.eval_batch_multiplier);
  parts_.log.Replan(plan_, step_, why);
}

void TrainLoop::WatchMemory(const char* stage) {
  const auto growth = growth_watch_.After(stage, parts_.memory.Read().live);
  if (growth.has_value()) parts_.log.Growing(*growth, step_);
}

void TrainLoop::WatchThrashing() {
  if (!thrash_guard_.AfterStep(parts_.memory.Read().alloc_retries)) return;
  if (parts_.job.policy != MemoryPolicy::kPlan) return;
  if (const auto smaller = SmallerPlan(plan_)) UsePlan(*smaller, "the allocator is thrashing");
}

bool TrainLoop::ShrinkEvaluation() {
  // Never more rows than there are: half of a surplus would be the same batch again.
  evaluation_rows_ = std::min(evaluation_rows_, parts_.data.validation.num_rows());
  if (evaluation_rows_ <= 1) return false;
  evaluation_rows_ /= 2;
  LogWarning(absl::StrFormat("Trial %d - the evaluation after step %d is redone %d rows at a time",
                             parts_.job.trial.value, step_, evaluation_rows_));
  return true;
}

std::optional<TrainLoop::Ending> TrainLoop::Measure() {
  Metrics metrics;
  const auto evaluate = [&] {
    parts_.log.EnterPhase("evaluation");
    metrics = Evaluate(parts_.model, parts_.data.validation,
                       EvaluationBatches(parts_.data.validation, evaluation_rows_),
                       parts_.max_positions, parts_.device);
  };
  if (auto ending = RunGuarded(evaluate, [this] { return ShrinkEvaluation(); })) return ending;
  parts_.log.EnterPhase("between steps");
  WatchMemory("evaluation");
  metrics["train_loss"] = loss_sum_ / static_cast<double>(loss_steps_);
  loss_sum_ = 0.0;
  loss_steps_ = 0;
  measured_step_ = step_;
  parts_.events.Send(MeasurementMessage{{.step = step_, .epoch = epoch_, .metrics = metrics}});
  LogInfo(absl::StrFormat("Trial %d - step %d of %d: %s %.4f, loss %.4f", parts_.job.trial.value,
                          step_, total_steps_, parts_.job.objective.metric,
                          metrics.at(parts_.job.objective.metric), metrics.at("loss")));
  if (!Improves(metrics)) return std::nullopt;
  best_ = std::move(metrics);
  if (const absl::Status saved = parts_.save_best(step_); !saved.ok()) {
    return Ending{Failed{.failure_class = FailureClass::kInternal,
                         .message = absl::StrCat("best weights: ", saved.message())}};
  }
  WatchMemory("best weights");
  return std::nullopt;
}

bool TrainLoop::Improves(const Metrics& metrics) const {
  if (!best_.has_value()) return true;
  const std::string& name = parts_.job.objective.metric;
  return parts_.job.objective.direction == Direction::kMaximize
             ? metrics.at(name) > best_->at(name)
             : metrics.at(name) < best_->at(name);
}

std::optional<TrainLoop::Ending> TrainLoop::CheckStop() const {
  const std::optional<StopRequest> stop = parts_.stops.Poll();
  if (!stop.has_value()) return std::nullopt;
  LogInfo(absl::StrFormat("Trial %d - stopped at step %d: %s", parts_.job.trial.value, step_,
                          stop->reason));
  if (stop->reason == "pruned") {
    return Ending{
        StoppedByPruner{.pruner = {}, .step = step_, .metrics = best_.value_or(Metrics{})}};
  }
  if (stop->reason == "cancelled") return Ending{Cancelled{.reason = "cancelled on request"}};
  return Ending{};
}

void TrainLoop::ReportProgress(double loss) {
  const absl::Duration now = SystemClock().Monotonic();
  if (step_ > 1 && now - last_progress_ < kProgressInterval) return;
  last_progress_ = now;
  parts_.events.Send(ProgressMessage{.step = step_, .total_steps = total_steps_, .loss = loss});
}

}  // namespace hpo
