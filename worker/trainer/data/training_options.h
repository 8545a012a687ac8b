// A trial's parameters as the trainer uses them. Free of torch.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/space/params.h"
#include "memory/need/memory_estimate.h"
#include "worker/text/batching/batcher.h"
#include "worker/text/batching/query_set.h"
#include "worker/trainer/scores/class_weights.h"

namespace hpo::trainer {

struct TrainingOptions {
  memory::TrainingConfig config;  // batch, length, head, dropout: what memory depends on
  bool tf32 = false;              // matrix products of float32 with 10 bits of mantissa (GPU)
  double learning_rate = 5e-5;
  double weight_decay = 0.01;
  double warmup_ratio = 0.1;
  double max_grad_norm = 1.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  // Measurements in a row without a better one, after which the training ends; 0: none do.
  int64_t early_stopping = 0;
  // Optimizer steps after which the allocator's cache goes back to the device; 0: it stays.
  int64_t clear_cache_every = 0;
  double data_subset = 1.0;  // share of the training rows that are used
  text::QueryPadding query_padding = text::QueryPadding::kNone;
  ClassWeightSpec class_weights;
  double label_smoothing = 0.0;
  uint64_t seed = 0;

  // Of an epoch, from 0, by effective batches of `batch_size` rows.
  text::EpochDraw DrawOf(int64_t batch_size, int64_t epoch) const {
    return {.batch_size = batch_size,
            .group_by_length = config.group_by_length,
            .seed = seed,
            .epoch = epoch};
  }
};

// Reads the parameters; those not given keep their defaults. `seed` beats `job_seed`.
//   InvalidArgument  a name that the trainer does not know, or a value of another type or outside
//                    its range; the message says which parameter, what was expected and what
//                    came
absl::StatusOr<TrainingOptions> ReadTrainingOptions(const ParamMap& params, uint64_t job_seed);

// What `hpo-trainer --list-parameters` prints: one line for each parameter, with its default.
std::string DescribeParameters();

}  // namespace hpo::trainer
