#include "worker/trainer/tasks/make_task.h"

#include "common/model_modules.h"
#include "common/status.h"
#include "worker/trainer/tasks/text_classification.h"

namespace hpo {
namespace {

HeadOptions HeadOf(const ModelShape& shape, const TrainingConfig& config, const TextData& data) {
  return {.num_labels = static_cast<int64_t>(data.labels.size()),
          .hidden_sizes = config.HeadSizes(),
          .dropout = config.head_dropout.value_or(HeadDropoutOf(shape))};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Task>> MakeTask(TaskKind kind, const ModelShape& shape,
                                               const TrainingOptions& options,
                                               const TaskParts& parts) {
  switch (kind) {
    case TaskKind::kTextClassification: {
      HPO_ASSIGN_OR_RETURN(
          auto model,
          MakeTextClassifier(shape, HeadOf(shape, options.config, parts.data), parts.device));
      return std::make_unique<TextClassification>(std::move(model), parts);
    }
  }
  return absl::InternalError("unreachable");
}

}  // namespace hpo
