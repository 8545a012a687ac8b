// Layers of torch.nn other than linear ones: see traced_device.h.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/trace/traced_device.h"

namespace hpo::memory {

// LayerNorm (bias) or RMSNorm (none).
struct TracedNorm {
  TracedParameter weight;
  std::optional<TracedParameter> bias;
  int64_t width = 0;
};

namespace ops {

TracedTensor Embedding(TracedDevice& device, const TracedStorage& indices, int64_t num_indices,
                       const TracedParameter& table, int64_t width);
TracedTensor LayerNorm(TracedDevice& device, const TracedTensor& input, const TracedNorm& norm);
// at::rms_norm: one kernel on a card, written out by torch on a CPU. `norm` has no bias.
TracedTensor RmsNorm(TracedDevice& device, const TracedTensor& input, const TracedNorm& norm);

}  // namespace ops
}  // namespace hpo::memory
