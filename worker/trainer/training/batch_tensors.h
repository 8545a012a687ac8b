// Batches as tensors on a device, and their loss.
#pragma once

#include <cstdint>

#include "worker/text/batcher.h"
#include "worker/trainer/models/backbone.h"
#include "worker/trainer/torch_headers.h"

namespace hpo {

struct DeviceBatch {
  ModelInput input;
  // Single label: int64 [rows]. Multi label: float32 [rows, num_labels] of 0 and 1.
  torch::Tensor labels;
};

// Copies `batch` to the device.
DeviceBatch ToDevice(const PaddedBatch& batch, int64_t num_labels, torch::Device device);

// Loss summed over rows, a float32 scalar: cross entropy, or with several labels a row the mean
// over labels of the binary cross entropy. logits: [rows, num_labels]; labels: see DeviceBatch.
// Never a mean over rows: parts of one effective batch must add up.
torch::Tensor SumOfRowLosses(const torch::Tensor& logits, const torch::Tensor& labels);

}  // namespace hpo
