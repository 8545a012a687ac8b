// Batches as tensors on a device, and their loss.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/text/batching/batcher.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/backbone.h"
#include "worker/trainer/scores/class_weights.h"

namespace hpo::trainer {

struct DeviceBatch {
  ModelInput input;
  // Single label: int64 [rows]. Multi label: float32 [rows, num_labels] of 0 and 1; a regression's
  // numbers likewise. Language modelling: int64 [rows * length], what follows each token.
  torch::Tensor labels;
  torch::Tensor numbers;  // of queries alone: float32 [answered, 2]
  // Of a set with span queries alone, float32: whether a row is asked for its class and numbers,
  // [rows, 1]; see TokenBatch, [rows, length, 2] and [rows, length, 1].
  torch::Tensor asks_class;
  torch::Tensor span_targets;
  torch::Tensor span_weights;
};

// Copies `batch` to the device.
torch::Tensor ToDevice(const std::vector<float>& values, torch::Device device);
DeviceBatch ToDevice(const text::TokenBatch& batch, int64_t num_labels, torch::Device device);

struct ClassLossOptions {
  torch::Tensor weights;  // [num_labels], see LabelLoss; undefined: none
  double smoothing = 0.0;
};

ClassLossOptions ToDevice(const LabelLoss& loss, torch::Device device);

// Loss summed over rows, a float32 scalar: cross entropy, or with several labels a row the mean
// over labels of the binary cross entropy, both as torch's losses with weights have it. The
// smoothing is of the former alone: the latter's labels come smoothed. logits: [rows, num_labels];
// labels: see DeviceBatch; of one label a row -100 is none (kNoClass). Never a mean over rows:
// parts of one effective batch must add up.
torch::Tensor SumOfRowLosses(const torch::Tensor& logits, const torch::Tensor& labels,
                             const ClassLossOptions& options = {});

}  // namespace hpo::trainer
