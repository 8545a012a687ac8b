// Stochastic gradient descent with momentum. A thin layer over torch's fused kernels.
// Source: torch.optim.SGD (no dampening, no Nesterov); weight decay is part of the gradient there.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/trainer/optimizers/optimizer.h"

namespace hpo::trainer {

// All parameters are float32.
class Sgd final : public Optimizer {
 public:
  // Allocates 4 bytes for each parameter element; nothing where `momentum` is 0. 0 <= momentum < 1.
  Sgd(std::vector<ParameterGroup> groups, double momentum);

  const std::vector<ParameterGroup>& groups() const override { return groups_; }
  void Step(double learning_rate) override;
  int64_t num_steps() const override { return num_steps_; }
  // "<parameter>.momentum_buffer".
  std::vector<NamedTensor> State() const override;
  void SetNumSteps(int64_t num_steps) override { num_steps_ = num_steps; }

 private:
  std::vector<ParameterGroup> groups_;
  std::vector<std::vector<torch::Tensor>> buffers_;  // one list for each group
  double momentum_;
  int64_t num_steps_ = 0;
};

}  // namespace hpo::trainer
