// Loss and gradient norm of the steps that nobody has looked at yet. On a card, reading a number
// waits for all that was queued before it; so a step leaves them there, and goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// Not thread-safe. Throws what torch throws.
class StepScalars {
 public:
  static constexpr int64_t kCapacity = 256;  // steps

  // Allocates 2 KiB on the device, and nothing later.
  explicit StepScalars(torch::Device device);

  // loss, norm: float32 scalars on the device. Waits for nothing. Not when full.
  void Add(const torch::Tensor& loss, const torch::Tensor& norm);
  bool full() const { return size_ == kCapacity; }

  struct Step {
    double loss = 0.0;
    double norm = 0.0;
  };
  // Those added since the last call, in order. Waits for the device where there are any.
  std::vector<Step> Take();

 private:
  torch::Tensor values_;  // [kCapacity, 2]
  int64_t size_ = 0;
};

}  // namespace hpo::trainer
