// The classifier that a configuration describes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/freezing.h"
#include "common/memory/execution.h"
#include "common/memory/lora.h"
#include "common/memory/memory_estimate.h"
#include "common/memory/optimizer_states.h"
#include "common/model_spec.h"

namespace hpo {

struct ClassifierShape {
  ModelShape model;                 // with the trial's dropout
  std::vector<int64_t> head_sizes;  // hidden layers of the classification head
  double head_dropout = 0.0;
  int64_t num_labels = 2;
  bool multi_label = false;  // several labels a row
  OptimizerSpec optimizer;
  Execution execution;
  Freezing freezing;
  std::optional<LoraOptions> lora;
};

// As `plan` runs it.
ClassifierShape ClassifierShapeOf(const EstimateInput& input, const MemoryPlan& plan);

}  // namespace hpo
