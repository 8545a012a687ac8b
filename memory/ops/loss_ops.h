// Losses: see traced_device.h.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/trace/traced_device.h"

namespace hpo::memory::ops {

// Mean cross entropy of [rows, classes]: one element.
TracedTensor CrossEntropy(TracedDevice& device, const TracedTensor& logits, int64_t rows,
                          int64_t classes);
// How at::cross_entropy_loss is called: with weights of the classes, with label smoothing.
struct LossOptions {
  bool weighted = false;
  bool smoothed = false;
};
// As CrossEntropy.
TracedTensor ClassLoss(TracedDevice& device, const TracedTensor& logits, int64_t rows,
                       int64_t classes, const LossOptions& options);
// Sum over all elements of the binary cross entropy; `weights`: the elements of pos_weight.
TracedTensor BinaryCrossEntropy(TracedDevice& device, const TracedTensor& logits,
                                const std::optional<int64_t>& weights = std::nullopt);
// Sum over all elements of the squared error.
TracedTensor SquaredError(TracedDevice& device, const TracedTensor& predicted);

}  // namespace hpo::memory::ops
