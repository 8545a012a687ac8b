// Tested by tests/worker/trainer/program/run_trial_test.cc.
#include "worker/trainer/training/train_steps.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "worker/trainer/base/trial_log.h"
#include "worker/trainer/training/train_course.h"

namespace hpo::trainer {

TrainSteps::TrainSteps(const TrainLoopParts& parts, LoopState& state, int64_t total_steps)
    : parts_(parts),
      state_(state),
      total_steps_(total_steps),
      schedule_(parts.options.learning_rate, parts.options.warmup_ratio, total_steps),
      unread_(parts.reads_late ? std::optional<StepScalars>(parts.device) : std::nullopt),
      ahead_([this](const text::BatchRows& rows) { return parts_.task.TokensOf(rows); }) {}

void TrainSteps::Compute(const text::BatchRows& rows, const text::BatchRows* next) {
  if (!reads_late()) {
    computed_ = ComputeRead(BatchOf(rows, next));
    return;
  }
  const torch::Tensor loss =
      AddGradients(parts_.task, BatchOf(rows, next), parts_.device, parts_.log);
  parts_.log.EnterPhase("gradient clipping");
  unread_->Add(loss, ClipGradientsUnread(parts_.optimizer.groups(), parts_.options.max_grad_norm));
}

EffectiveBatch TrainSteps::BatchOf(const text::BatchRows& rows, const text::BatchRows* next) {
  return {.rows = rows,
          .plan = state_.plan,
          .seed = parts_.options.seed,
          .step = state_.step,
          .loss_scale = state_.loss_scale.scale,
          .ahead = &ahead_,
          .next = next};
}

StepScalars::Step TrainSteps::ComputeRead(const EffectiveBatch& batch) {
  const double loss = ComputeGradients(parts_.task, batch, parts_.device, parts_.log);
  parts_.log.EnterPhase("gradient clipping");
  return {.loss = loss,
          .norm = ClipGradients(parts_.optimizer.groups(), parts_.options.max_grad_norm,
                                state_.loss_scale.scale)};
}

std::optional<Failed> TrainSteps::Apply() {
  StepVerdict verdict = StepVerdict::kTake;
  if (!reads_late()) {
    const bool has_scale = state_.plan.precision == Precision::kFloat16;
    verdict = JudgeStep(computed_.loss, computed_.norm, has_scale ? &state_.loss_scale : nullptr);
  }
  if (verdict == StepVerdict::kDiverged) return Diverged(computed_, state_.step + 1);
  skipped_ = verdict == StepVerdict::kSkip;
  if (!skipped_) {
    parts_.log.EnterPhase("optimizer step");
    parts_.optimizer.Step(schedule_.At(state_.step));
  }
  ClearGradients(parts_.optimizer.groups());
  ++state_.step;
  ++state_.batches_done;
  if (!reads_late()) AddLoss(computed_.loss);
  if (skipped_) {
    loss_.reset();
    LogInfo(absl::StrFormat(
        "Trial %d - step %d skipped: gradients out of float16's range; loss scale %g from now on, "
        "%d steps skipped so far",
        parts_.job.trial.value, state_.step, state_.loss_scale.scale, state_.loss_scale.skipped));
  }
  return std::nullopt;
}

std::optional<Failed> TrainSteps::ReadLosses() {
  if (!unread_.has_value()) return std::nullopt;
  const std::vector<StepScalars::Step> steps = unread_->Take();
  int64_t number = state_.step - static_cast<int64_t>(steps.size());
  for (const StepScalars::Step& step : steps) {
    ++number;
    const bool is_finite = JudgeStep(step.loss, step.norm, nullptr) == StepVerdict::kTake;
    if (!is_finite) return Diverged(step, number);
    AddLoss(step.loss);
  }
  return std::nullopt;
}

void TrainSteps::AddLoss(double loss) {
  state_.loss_sum += loss;
  ++state_.loss_steps;
  loss_ = loss;
}

Failed TrainSteps::Diverged(const StepScalars::Step& read, int64_t step) const {
  return {.failure_class = FailureClass::kDiverged,
          .message = absl::StrCat("expected a finite loss, got loss ", read.loss,
                                  " and gradient norm ", read.norm, " at step ", step, " of ",
                                  total_steps_, " with learning rate ", schedule_.At(step - 1))};
}

}  // namespace hpo::trainer
