#include "common/memory/classifier_shape.h"

#include "common/model_modules.h"

namespace hpo {

ClassifierShape ClassifierShapeOf(const EstimateInput& input, const MemoryPlan& plan) {
  const TrainingConfig& config = input.config;
  ClassifierShape shape{.model = input.model,
                        .head_sizes = config.HeadSizes(),
                        .head_dropout = 0.0,
                        .num_labels = input.workload.num_labels,
                        .multi_label = input.workload.multi_label,
                        .optimizer = config.Optimizer(),
                        .execution = ExecutionOf(config, plan),
                        .freezing = config.freezing,
                        .lora = config.lora};
  if (config.dropout.has_value()) {
    shape.model.hidden_dropout = *config.dropout;
    shape.model.attention_dropout = *config.dropout;
  }
  shape.head_dropout = config.head_dropout.value_or(HeadDropoutOf(shape.model));
  return shape;
}

}  // namespace hpo
