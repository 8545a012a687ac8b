// The model and the head that a configuration describes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/models/freezing.h"
#include "common/models/model_parameters.h"
#include "common/models/model_spec.h"
#include "memory/trace/estimate_input.h"
#include "memory/trace/execution.h"
#include "memory/trace/kernel_traits.h"
#include "memory/trace/lora.h"
#include "memory/trace/optimizer_states.h"

namespace hpo::memory {

struct ClassifierShape {
  ModelShape model;                 // with the trial's dropout
  std::vector<int64_t> head_sizes;  // hidden layers of the classification head
  double head_dropout = 0.0;
  int64_t num_labels = 2;
  bool multi_label = false;  // several labels a row
  TaskKind task = TaskKind::kTextClassification;
  bool weighs_classes = false;
  bool smooths_labels = false;
  int64_t loss_rows = 1;  // of language modelling: tokens whose logits exist at a time
  OptimizerSpec optimizer;
  Execution execution;
  Freezing freezing;
  std::optional<LoraOptions> lora;
};

// What of a model's parameters is the head of `task`.
TaskHead HeadOf(TaskKind task);

// Tokens whose logits exist at a time where the configuration leaves it open (0): 64 MiB of them.
int64_t LossRows(int64_t configured, int64_t vocab_size);

// As `plan` runs it.
ClassifierShape ClassifierShapeOf(const EstimateInput& input, const MemoryPlan& plan);

// The parameters of the head's layers; none without labels.
std::vector<ParameterExtent> HeadExtents(const ClassifierShape& shape);
// Theirs, and what the optimizer keeps for them: each tensor rounded up on its own.
Bytes HeadParameterBytes(const ClassifierShape& shape, const KernelTraits& traits);
Bytes HeadStateBytes(const ClassifierShape& shape, const KernelTraits& traits);

}  // namespace hpo::memory
