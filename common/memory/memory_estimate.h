// How much memory a training configuration needs, by a closed form. memory_replay.h answers the
// same exactly.
//
// Pure and deterministic; microseconds per call; safe from any thread.
// Source of the formulas: Korthikanti et al. 2022 (arXiv:2205.05198), section 4, with our
// own kernels' tensors.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/bytes.h"
#include "common/freezing.h"
#include "common/memory/execution.h"
#include "common/memory/kernel_traits.h"
#include "common/memory/lora.h"
#include "common/memory/optimizer_states.h"
#include "common/model_spec.h"
#include "common/params.h"
#include "common/study.h"
#include "common/trial.h"
#include "common/worker_facts.h"
#include "common/workload.h"

namespace hpo {

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
  bool unpadded = false;         // memory.unpadded: batches are packed (common/packed_rows.h)
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

// Bytes by class at the peak: weights, gradients, optimizer, activations and head add up to
// `live_peak`, what our trainer's counting allocator would report as its peak, what it held before
// the trial left out. Reserved peaks add what the caching allocator holds on top, and workspaces.
// The same passes may come in several orders (CachedReplay). What is `expected` is of the order
// that our trainer runs, to be held against what a run reports: `expected_live_peak` is the
// tensors' as the device's allocator counts them, with what it does not split off. `reserved_peak`
// is the largest of the orders that a configuration may run in, a bound, as `needed_limit` is: the
// smallest budget of the device at which the plan runs in each of them, base included. Bounds admit
// and refuse. On a CPU all five are equal.
struct MemoryEstimate {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // saved for backward, the largest temporary, and the batch
  Bytes head;         // its weights, gradients and optimizer state
  Bytes workspaces;
  Bytes base;
  Bytes live_peak;
  Bytes expected_live_peak;
  Bytes expected_reserved_peak;
  Bytes reserved_peak;
  Bytes needed_limit;
  std::string peak_phase;  // "training" (forward and backward) or "evaluation"
  // What the allocator reserves depends on details that no estimate knows, by more than 3 %.
  bool fragile = false;
  bool operator==(const MemoryEstimate&) const = default;

  // Where tensors alone count.
  void SetPeaksToLive() {
    expected_live_peak = expected_reserved_peak = reserved_peak = needed_limit = live_peak;
  }
};

// Everything an estimate is a function of, apart from the plan.
struct EstimateInput {
  ModelShape model;
  TrainingConfig config;
  Workload workload;
  DeviceProfile device;
  auto operator<=>(const EstimateInput&) const = default;

  // Of the classifier's head; language modelling has none: its product is the word embeddings' or
  // a part of the model.
  int64_t NumOutputs() const {
    return workload.task == TaskKind::kLanguageModeling ? 0 : workload.num_labels;
  }
};

// Whether the sizes of `input` and `plan` are ones that a model may have.
//   InvalidArgument  as EstimateMemory
absl::Status CheckEstimateInput(const EstimateInput& input, const MemoryPlan& plan);

// How `device` runs a trial's operations.
KernelTraits TraitsOf(const DeviceProfile& device);

// By formula, at the workload's longest batch. On a CPU an upper bound that is close: never less
// than what a run uses. On a card reserved peaks and needed limit are ratios of the tensors, which
// some trials exceed, and nothing is decided by them (EstimateWithin replays). A plan that
// recomputes layers or runs in 16 bits has no closed form, nor a model of which a part is frozen:
// its tensors are those of the trace (memory_replay.h), about a millisecond. A histogram bounds the
// rows of a batch too; an empty one counts as rows enough, all of them tok.max_length long.
//   InvalidArgument  a shape, size or plan that is not positive or beyond what any model has (2^31;
//                    4096 layers), or as CheckTrainedParts; names it
absl::StatusOr<MemoryEstimate> EstimateMemory(const EstimateInput& input, const MemoryPlan& plan);

// Between what a replay's needed limit on a card is, where EstimateMemory says `formula`: wide, as
// no replay of 20,000 random trials of every family and technique is outside or near its ends
// (tests/common/memory/need_range_test.cc). For surveys, and for where to begin to search.
struct NeedRange {
  Bytes least;
  Bytes most;
  bool operator==(const NeedRange&) const = default;
};
NeedRange NeedRangeOf(const MemoryEstimate& formula);

}  // namespace hpo
