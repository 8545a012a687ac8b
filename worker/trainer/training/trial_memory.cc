// Tested by tests/worker/trainer/recovery_test.cc.
#include "worker/trainer/training/trial_memory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "memory/plan/memory_plan.h"
#include "worker/trainer/base/trial_log.h"
#include "worker/trainer/data/trial_batches.h"
#include "worker/trainer/device/trial_device.h"
#include "worker/trainer/training/backward_barrier.h"
#include "worker/trainer/training/oom_outcome.h"

namespace hpo::trainer {
namespace {

// What the trial's tensors may hold, by its job or by its device.
Bytes LimitOf(const TrainLoopParts& parts) {
  return parts.job.task.limit > Bytes{} ? parts.job.task.limit : parts.memory.Read().total;
}

}  // namespace

TrialMemory::TrialMemory(const TrainLoopParts& parts, LoopState& state)
    : parts_(parts),
      state_(state),
      replanner_(parts.estimate_input, parts.log.baseline(), LimitOf(parts),
                 parts.job.task.memory.allow_checkpointing),
      baseline_(parts.memory.Read().live),
      growth_watch_(baseline_) {}

std::optional<TrialOutcome> TrialMemory::Train(absl::FunctionRef<void()> work) {
  return Run(work, [this] { return ShrinkPlan(); });
}

std::optional<TrialOutcome> TrialMemory::Evaluate(absl::FunctionRef<void()> work) {
  const auto evaluate = [&] {
    parts_.log.EnterPhase("evaluation");
    work();
  };
  auto failure = Run(evaluate, [this] { return ShrinkEvaluation(); });
  if (!failure.has_value()) parts_.log.EnterPhase("between steps");
  return failure;
}

std::optional<TrialOutcome> TrialMemory::Run(absl::FunctionRef<void()> work,
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
    if (auto outcome = Recover(attempt, shrink)) return outcome;
  }
}

std::optional<TrialOutcome> TrialMemory::Recover(const BatchAttempt& attempt,
                                                 absl::FunctionRef<bool()> shrink) {
  const MemoryFault& fault = *attempt.fault;
  const std::string phase = parts_.log.phase();
  clean_ = clean_ && attempt.clean;
  FaultMet met{.device_lost = fault.type == MemoryFaultType::kDeviceLost,
               .clean = attempt.clean,
               .certain = fault.certain,
               .may_shrink = may_shrink(),
               .steps_done = state_.step > 0};
  if (!met.device_lost) met.kind = ReportShortage(attempt);
  RecoveryEvent event = met;
  while (true) {
    RecoveryStep next = NextRecovery(std::move(recovery_), event);
    recovery_ = std::move(next.state);
    bool is_done = true;
    switch (next.action) {
      case RecoveryAction::kLoseDevice:
        return DeviceLostOutcome(fault, phase, state_.step);
      case RecoveryAction::kFail:
        return Failed{.failure_class = FailureClass::kInternal,
                      .message = absl::StrCat("in phase '", phase,
                                              "', and nothing smaller helps: ", fault.message)};
      case RecoveryAction::kEnd:
        return OutOfMemoryOutcome(
            fault, attempt.use,
            {.job = parts_.job, .phase = phase, .step = state_.step, .plan = state_.plan},
            parts_.memory.Describe().kind);
      case RecoveryAction::kShrink:
        is_done = shrink();
        break;
      case RecoveryAction::kRenewWorkspaces:
        is_done = renew_workspaces_ = parts_.memory.Relieve(Relief::kNewWorkspaces);
        break;
      case RecoveryAction::kExpandSegments:
        parts_.memory.Relieve(Relief::kExpandableSegments);
        break;
      case RecoveryAction::kRedo:
        break;
    }
    if (is_done) break;
    event = NothingDone{};
  }
  thrash_guard_.StartFrom(parts_.memory.Read().alloc_retries);
  return std::nullopt;
}

OomKind TrialMemory::ReportShortage(const BatchAttempt& attempt) {
  const Bytes needed = NeededAtLeast(*attempt.fault, attempt.use);
  parts_.log.OutOfMemoryMet(attempt.use, needed,
                            replanner_.PredictedPeak(state_.plan).value_or(Bytes{}), state_.step);
  const OomKind kind = KindOfOom(*attempt.fault, attempt.use, state_.step);
  // The other kinds say nothing about what the plan needs.
  if (kind == OomKind::kConfiguration || kind == OomKind::kLatePeak) {
    replanner_.Correct(state_.plan, needed);
  }
  return kind;
}

bool TrialMemory::ShrinkPlan() {
  const std::optional<MemoryPlan> smaller = replanner_.Smaller(state_.plan);
  if (smaller.has_value()) UsePlan(*smaller, "out of memory");
  return smaller.has_value();
}

bool TrialMemory::ShrinkEvaluation() {
  // Never more rows than there are: half of a surplus would be the same batch again.
  state_.evaluation_rows = std::min(state_.evaluation_rows, parts_.data.validation.num_rows());
  if (state_.evaluation_rows <= 1) return false;
  state_.evaluation_rows /= 2;
  LogWarning(absl::StrFormat("Trial %d - the evaluation after step %d is redone %d rows at a time",
                             parts_.job.trial.value, state_.step, state_.evaluation_rows));
  return true;
}

void TrialMemory::UsePlan(const MemoryPlan& plan, const std::string& why) {
  const memory::TrainingConfig& config = parts_.options.config;
  state_.plan = plan;
  parts_.task.SetExecution(memory::ExecutionOf(config, plan));
  state_.evaluation_rows =
      std::min(state_.evaluation_rows, plan.micro_batch * config.eval_batch_multiplier);
  parts_.log.Replan(plan, state_.step, why);
}

void TrialMemory::JudgeProbe() {
  const Bytes predicted = replanner_.PredictedPeak(state_.plan).value_or(Bytes{});
  const memory::TrialPasses passes =
      PassesOf(parts_.job, parts_.options, parts_.data, parts_.estimate_input.model.max_positions,
               state_.plan);
  const Bytes measured = parts_.log.Probed(
      predicted, replanner_.PredictedReservedPeak(state_.plan, passes).value_or(Bytes{}));
  if (!replanner_.Correct(state_.plan, measured)) return;
  LogWarning(absl::StrFormat("Trial %d - the memory estimate is too low by %s",
                             parts_.job.trial.value, FormatBytes(replanner_.correction())));
  if (!may_shrink() || replanner_.Fits(state_.plan)) return;
  if (const auto smaller = replanner_.Smaller(state_.plan)) {
    UsePlan(*smaller, "the probe needed more than predicted");
  }
}

void TrialMemory::Watch(const char* stage) {
  const auto growth = growth_watch_.After(stage, parts_.memory.Read().live);
  if (growth.has_value()) parts_.log.Growing(*growth, state_.step);
}

void TrialMemory::WatchStep() {
  Watch("training step");
  WatchThrashing();
  const int64_t every = parts_.options.clear_cache_every;
  if (every > 0 && state_.step % every == 0) parts_.memory.ReleaseCache();
}

void TrialMemory::WatchThrashing() {
  if (!thrash_guard_.AfterStep(parts_.memory.Read().alloc_retries)) return;
  if (!may_shrink()) return;
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

}  // namespace hpo::trainer
