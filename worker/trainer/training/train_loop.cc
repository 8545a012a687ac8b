#include "worker/trainer/training/train_loop.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/memory/memory_plan.h"
#include "worker/trainer/training/effective_batch.h"
#include "worker/trainer/training/evaluation.h"
#include "worker/trainer/training/oom_outcome.h"
#include "worker/trainer/trial_log.h"

namespace hpo {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(500);

int64_t StepsPerEpoch(int64_t rows, int64_t effective_batch) {
  return (rows + effective_batch - 1) / effective_batch;
}

}  // namespace

TrainLoop::TrainLoop(TrainLoopParts parts, const MemoryPlan& plan)
    : parts_(std::move(parts)),
      plan_(plan),
      evaluation_rows_(plan.micro_batch * parts_.options.config.eval_batch_multiplier),
      total_steps_(parts_.job.epochs *
                   StepsPerEpoch(parts_.data.train.num_rows(), plan.effective_batch)),
      schedule_(parts_.options.learning_rate, parts_.options.warmup_ratio, total_steps_),
      baseline_(parts_.memory.Read().live) {}

TrainLoopResult TrainLoop::Run() {
  parts_.model.train();
  std::optional<Ending> ending;
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
  const auto compute = [&] {
    const EffectiveBatch batch{.data = parts_.data.train,
                               .rows = rows,
                               .plan = plan_,
                               .seed = parts_.options.seed,
                               .step = step_,
                               .max_positions = parts_.max_positions};
    loss = ComputeGradients(parts_.model, batch, parts_.device, parts_.log);
    parts_.log.EnterPhase("gradient clipping");
    gradient_norm_ = parts_.optimizer.ClipGradients(parts_.options.max_grad_norm);
  };
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
  parts_.optimizer.ClearGradients();
  ++step_;
  loss_sum_ += loss;
  ++loss_steps_;
  ReportProgress(loss);
  return std::nullopt;
}

std::optional<TrainLoop::Ending> TrainLoop::RunGuarded(absl::FunctionRef<void()> work,
                                                       absl::FunctionRef<bool()> shrink) {
  while (true) {
    const BatchAttempt attempt =
        TryBatch(parts_.memory, baseline_, work, [this] { parts_.optimizer.ClearGradients(); });
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
  parts_.log.OutOfMemoryMet(attempt.use, step_);
  if (parts_.job.policy == MemoryPolicy::kPlan && attempt.clean && shrink()) return std::nullopt;
  return Ending{OutOfMemoryOutcome(
      *attempt.fault, attempt.use,
      {.job = parts_.job, .phase = phase, .step = step_, .plan = plan_}, parts_.memory.Kind())};
}

bool TrainLoop::ShrinkPlan() {
  const std::optional<MemoryPlan> smaller = SmallerPlan(plan_);
  if (!smaller.has_value()) return false;
  plan_ = *smaller;
  evaluation_rows_ =
      std::min(evaluation_rows_, plan_.micro_batch * parts_.options.config.eval_batch_multiplier);
  parts_.log.Replan(plan_, step_);
  return true;
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
    metrics = Evaluate(parts_.model, parts_.data.validation, evaluation_rows_, parts_.max_positions,
                       parts_.device);
  };
  if (auto ending = RunGuarded(evaluate, [this] { return ShrinkEvaluation(); })) return ending;
  parts_.log.EnterPhase("between steps");
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
