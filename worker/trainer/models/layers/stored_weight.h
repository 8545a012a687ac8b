// The weight of a frozen linear layer in fewer bits than it computes with: bfloat16, or 4-bit
// NormalFloat. Products make the values again whenever they need them, forward and backward, so
// that a layer's are there one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/trace/lora.h"
#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// Not thread-safe while Store runs.
class StoredWeight {
 public:
  // Of `shape`, without values yet, on `device`. `type`: kBFloat16 or kNf4. `table`: Nf4Table's on
  // the same device (kNf4).
  StoredWeight(memory::FrozenType type, at::IntArrayRef shape, torch::Device device,
               torch::Tensor table);

  at::IntArrayRef sizes() const { return shape_; }

  // Takes the values, float32 on the host in the shape's order, rounded to what is stored.
  void Store(std::span<const float> values);
  // What is stored, to the host. No memory of torch's on a CPU.
  void Load(std::span<float> values) const;

  // What is stored, in `type`, on the device: the storage itself where it has that type.
  torch::Tensor Values(torch::ScalarType type) const;

 private:
  memory::FrozenType type_;
  std::vector<int64_t> shape_;
  int64_t elements_;
  torch::Tensor half_;    // kBFloat16
  torch::Tensor codes_;   // kNf4: [blocks * 32], uint8
  torch::Tensor scales_;  // kNf4: [blocks, 1], float32
  torch::Tensor table_;
};

// The two values of each byte of codes, [256, 2], float32.
torch::Tensor Nf4Table(torch::Device device);

// input W^T + bias, W [outputs, inputs]: the stored weight, or with `transposed` its transpose.
// Only the input gets a gradient; nothing but the weight as it is stored is kept for it.
torch::Tensor StoredProduct(const torch::Tensor& input, std::shared_ptr<const StoredWeight> weight,
                            const torch::Tensor& bias, bool transposed);

}  // namespace hpo::trainer
