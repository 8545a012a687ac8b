#include "worker/trainer/tasks/make_task.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/models/model_modules.h"
#include "common/models/query_answers.h"
#include "memory/families/classifier_shape.h"
#include "worker/trainer/tasks/language_modeling.h"
#include "worker/trainer/tasks/multi_query.h"
#include "worker/trainer/tasks/text_classification.h"
#include "worker/trainer/tasks/text_regression.h"

namespace hpo::trainer {
namespace {

HeadOptions HeadOf(const ModelShape& shape, const memory::TrainingConfig& config,
                   const TextData& data) {
  return {.num_labels = static_cast<int64_t>(data.labels.size()),
          .hidden_sizes = config.HeadSizes(),
          .dropout = config.head_dropout.value_or(HeadDropoutOf(shape)),
          .spans = data.task == TaskKind::kMultiQuerySpans};
}

memory::FrozenType BaseOf(const memory::TrainingConfig& config) {
  return config.lora.has_value() ? config.lora->base : memory::FrozenType::kFloat32;
}

absl::StatusOr<LabelLoss> LossOf(const TrainingOptions& options, const TextData& data) {
  std::vector<std::string> classes = data.labels;
  if (AsksQueries(data.task)) classes.resize(classes.size() - kAspectNumbers);
  const text::EncodedDataset& rows =
      AsksQueries(data.task) ? data.train_queries->queries : data.train;
  HPO_ASSIGN_OR_RETURN(std::vector<float> weights,
                       ClassWeights(options.class_weights, classes, rows));
  return LabelLoss{.weights = std::move(weights), .smoothing = options.label_smoothing};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Task>> MakeTask(const ModelShape& shape,
                                               const TrainingOptions& options,
                                               const TaskParts& parts) {
  const TaskKind kind = parts.data.task;
  HPO_ASSIGN_OR_RETURN(const LabelLoss loss, LossOf(options, parts.data));
  if (kind == TaskKind::kLanguageModeling) {
    HPO_ASSIGN_OR_RETURN(auto model,
                         MakeLanguageModel(shape, parts.device, BaseOf(options.config)));
    return std::make_unique<LanguageModeling>(
        std::move(model), parts, memory::LossRows(options.config.loss_rows, shape.vocab_size));
  }
  HPO_ASSIGN_OR_RETURN(
      auto model, MakeTextClassifier(shape, HeadOf(shape, options.config, parts.data), parts.device,
                                     BaseOf(options.config)));
  if (AsksQueries(kind)) {
    return std::make_unique<MultiQuery>(std::move(model), parts, loss);
  }
  if (kind == TaskKind::kTextRegression) {
    return std::make_unique<TextRegression>(std::move(model), parts);
  }
  return std::make_unique<TextClassification>(std::move(model), parts, loss);
}

ModelRole RoleOf(const TextData& data) {
  switch (data.task) {
    case TaskKind::kTextClassification:
      return {.architecture = "ForSequenceClassification",
              .problem_type = data.train.multi_label ? "multi_label_classification"
                                                     : "single_label_classification"};
    case TaskKind::kTextRegression:
      return {.architecture = "ForSequenceClassification", .problem_type = "regression"};
    case TaskKind::kMultiQuery:
    case TaskKind::kMultiQuerySpans:
      return {.architecture = "ForSequenceClassification", .problem_type = ""};
    case TaskKind::kLanguageModeling:
      break;
  }
  return {.architecture = "ForCausalLM", .problem_type = ""};
}

}  // namespace hpo::trainer
