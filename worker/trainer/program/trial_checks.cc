#include "worker/trainer/program/trial_checks.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/models/task_kind.h"
#include "memory/need/memory_replay.h"
#include "memory/plan/fit_decision.h"

namespace hpo::trainer {
namespace {

// Names of aspects and opinions that no span is learnt of.
void WarnOfUnplaced(const std::string& path, const text::SpanQueries& spans,
                    std::vector<std::string>& warnings) {
  if (spans.unplaced == 0) return;
  warnings.push_back(absl::StrCat(path, ": ", spans.unplaced, " of ", spans.phrases,
                                  " aspects and opinions do not occur in their texts, letter for "
                                  "letter: no span is learnt for them"));
}

}  // namespace

absl::Status CheckJob(const TrainerJob& job, const TrainingOptions& options) {
  const std::optional<TaskKind> kind = ParseTaskKind(job.task.trainer.task);
  if (!kind.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("task: expected ", TaskNames(), ", got '", job.task.trainer.task, "'"));
  }
  if (job.task.trainer.gpus != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("gpus: expected 1, as hpo-trainer trains on one GPU, got ",
                     job.task.trainer.gpus, "; a program of your own can use several"));
  }
  HPO_RETURN_IF_ERROR(Annotate(CheckMetric(*kind, job.task.objective.metric), "objective.metric"));
  const bool has_classes = *kind == TaskKind::kTextClassification || AsksQueries(*kind);
  if (!has_classes && (options.config.weighs_classes || options.config.smooths_labels)) {
    return absl::InvalidArgumentError(
        absl::StrCat("train.class_weights, train.label_smoothing: expected neither with ",
                     job.task.trainer.task, ", which has no classes"));
  }
  if (job.task.trainer.model_init != "pretrained" && job.task.trainer.model_init != "random") {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.init: expected pretrained or random, got '", job.task.trainer.model_init, "'"));
  }
  if (job.task.trainer.epochs >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("epochs: expected at least 1, got ", job.task.trainer.epochs));
}

std::vector<std::string> DataWarnings(const TrainerJob& job, const memory::TrainingConfig& config,
                                      const ModelShape& shape, const TextData& data) {
  std::vector<std::string> warnings = data.warnings;
  if (data.task == TaskKind::kTextClassification) {
    std::vector<std::string> absent;
    for (const int32_t label : text::AbsentLabels(data.train)) {
      absent.push_back(data.labels[static_cast<size_t>(label)]);
    }
    if (!absent.empty()) {
      warnings.push_back(absl::StrCat(job.task.trainer.train, ": no training row has the label ",
                                      absl::StrJoin(absent, " or ")));
    }
  }
  if (data.train_queries.has_value()) {
    WarnOfUnplaced(job.task.trainer.train, data.train_queries->spans, warnings);
    WarnOfUnplaced(job.task.trainer.validation, data.validation_queries->spans, warnings);
  }
  for (const TruncatedRows& file : data.truncated) {
    if (file.truncated == 0) continue;
    warnings.push_back(absl::StrFormat(
        "%s: %d of %d rows are longer than the model's %d positions and are truncated "
        "(tok.max_length: %d)",
        file.path, file.truncated, file.rows, shape.max_positions, config.max_length));
  }
  return warnings;
}

bool IsAdmitted(const TrainerJob& job) {
  return job.task.admission && job.task.limit > Bytes{} &&
         job.task.memory.policy != MemoryPolicy::kOff;
}

absl::StatusOr<memory::PlannedMemory> FitTrial(const TrainerJob& job,
                                               const memory::EstimateInput& input,
                                               const MemoryPlan& plan) {
  HPO_ASSIGN_OR_RETURN(const memory::MemoryEstimate estimate,
                       memory::EstimateWithin(input, plan, job.task.limit));
  if (estimate.needed_limit <= job.task.limit) {
    return memory::PlannedMemory{.plan = plan, .estimate = estimate, .fits = true};
  }
  MemorySpec memory = job.task.memory;
  memory.allow_checkpointing = memory.allow_checkpointing || plan.checkpointing;
  memory.allow_lower_precision = plan.precision != Precision::kFloat32;
  HPO_ASSIGN_OR_RETURN(memory::PlannedMemory smaller,
                       memory::PlanMemory(input, memory, job.task.limit));
  // A refusal states what would be needed.
  if (!smaller.fits) {
    const auto replayed = memory::ReplayMemory(input, smaller.plan);
    if (replayed.ok()) smaller.estimate = *replayed;
  }
  return smaller;
}

OutOfMemory Refusal(const memory::PlannedMemory& planned, Bytes limit) {
  return {.predicted = true,
          .limit = limit,
          .needed = planned.estimate.needed_limit,
          .phase = planned.estimate.peak_phase,
          .plan = planned.plan,
          .message = memory::ExplainMisfit(planned, limit)};
}

}  // namespace hpo::trainer
