// What of a configuration and of a study's trainer memory depends on, read from them by name.
// Pure; safe from any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/models/freezing.h"
#include "common/models/model_spec.h"
#include "common/models/workload.h"
#include "common/space/params.h"
#include "common/study/study.h"
#include "common/study/trial.h"
#include "memory/trace/execution.h"
#include "memory/trace/lora.h"
#include "memory/trace/optimizer_states.h"

namespace hpo::memory {

// The part of a configuration that memory depends on, with the parameters' names.
struct TrainingConfig {
  int64_t batch_size = 8;             // train.batch_size
  int64_t grad_accum = 1;             // train.grad_accum
  int64_t max_length = 128;           // tok.max_length
  int64_t eval_batch_multiplier = 1;  // train.eval_batch_multiplier
  int64_t head_layers = 0;            // head.layers: hidden layers of the head, 0-3
  int64_t head_sizes[3] = {0, 0, 0};  // head.size_1 ... head.size_3, the first head_layers of them
  std::optional<double> dropout;  // model.dropout: of hidden states and attention; else the model's
  std::optional<double> head_dropout;               // head.dropout; else that of hidden states
  OptimizerKind optimizer = OptimizerKind::kAdamW;  // train.optimizer
  double momentum = 0.9;                            // train.momentum: SGD's
  Precision precision = Precision::kFloat32;        // train.precision
  // memory.checkpoint_every: layers of a segment that backward computes again; 0: none is.
  int64_t checkpoint_every = 0;
  Freezing freezing;  // model.freeze_embeddings, model.freeze_layers
  // Adapters on a frozen model, where lora.rank is above 0: lora.alpha, lora.dropout, lora.targets.
  std::optional<LoraOptions> lora;
  bool weighs_classes = false;  // train.class_weights is not none
  bool smooths_labels = false;  // train.label_smoothing is not 0
  // memory.loss_rows: tokens whose logits exist at a time, in language modelling; 0: by vocabulary.
  int64_t loss_rows = 0;
  // memory.clear_cache_every: steps between returns of the cache to the device; 0: never.
  int64_t clear_cache_every = 0;
  bool unpadded = false;  // memory.unpadded: batches are packed (common/models/packed_rows.h)
  bool group_by_length = false;  // train.group_by_length: rows of like length make a batch
  int64_t most_aspects = 0;      // aspects.max: of a training text; 0: any number
  int64_t queries_at_once = 0;   // aspects.at_once: 0: all of a micro-batch's texts
  bool pads_queries = false;     // aspects.padding is not none
  auto operator<=>(const TrainingConfig&) const = default;

  // At most the largest int64, whatever the two are.
  int64_t EffectiveBatch() const {
    int64_t product = 0;
    return __builtin_mul_overflow(batch_size, grad_accum, &product) ? INT64_MAX : product;
  }

  std::vector<int64_t> HeadSizes() const { return {head_sizes, head_sizes + head_layers}; }
  OptimizerSpec Optimizer() const { return {.kind = optimizer, .has_momentum = momentum != 0.0}; }
};

// How `plan` runs the model. One that checkpoints does so every config.checkpoint_every layers, or
// where that is 0, every layer.
Execution ExecutionOf(const TrainingConfig& config, const MemoryPlan& plan);

// Whether what the configuration trains is there in the model.
//   InvalidArgument  more frozen layers than it has; frozen parts besides adapters, which leave the
//                    whole model as it is; as AdaptedLayers
absl::Status CheckTrainedParts(const TrainingConfig& config, const ModelShape& shape);

// Whether the model and the task can run without padding, where the configuration asks for it.
//   InvalidArgument  another family than BERT, RoBERTa (XLM-RoBERTa, CamemBERT), ELECTRA and
//                    DistilBERT; another task than text classification and regression
absl::Status CheckUnpadded(const TrainingConfig& config, const ModelShape& shape, TaskKind task);

// The parameters that memory depends on: model.name and those of TrainingConfigOf, but for
// lora.alpha.
std::span<const char* const> MemoryParameters();

// Reads a TrainingConfig from a configuration over the study's trainer defaults.
//   InvalidArgument  a value of the wrong type or out of its range; names it
absl::StatusOr<TrainingConfig> TrainingConfigOf(const ParamMap& params, const TrainerSpec& trainer);

}  // namespace hpo::memory
