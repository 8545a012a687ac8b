// Linear layers: in the model's type, in fewer bits, with adapters. See traced_device.h.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/trace/lora.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

// A low-rank adapter beside a linear layer, as worker/trainer/models/layers/low_rank_adapter.h runs
// it: a dropped-out input through `a`, then `b`, scaled.
struct TracedAdapter {
  TracedParameter a;  // [rank, in_features]
  TracedParameter b;  // [out_features, rank]
  int64_t rank = 0;
  double dropout = 0.0;
};

struct TracedLinear {
  TracedParameter weight;
  std::optional<TracedParameter> bias;
  int64_t in_features = 0;
  int64_t out_features = 0;
  std::optional<TracedAdapter> adapter;
  bool transposed = false;  // GPT-2's Conv1D, whose weight is [in_features, out_features]
  // Gradients of the output come transposed: each product with it copies them first.
  bool copies_gradient = false;
  // In fewer bits than it computes with (worker/trainer/models/layers/stored_weight.h); kFloat32:
  // a parameter as any other. A stored weight is no tensor of the model: `weight` says its size
  // alone.
  FrozenType stored = FrozenType::kFloat32;
};

namespace ops {

TracedLinear MakeLinear(TracedDevice& device, int64_t in_features, int64_t out_features,
                        bool bias = true);
// With its adapter, where it has one.
// `rows_are_flattened`: the input has more dimensions than a matrix.
TracedTensor Linear(TracedDevice& device, const TracedTensor& input, const TracedLinear& layer,
                    bool rows_are_flattened = true);

}  // namespace ops
}  // namespace hpo::memory
