// AdamW: Adam with weight decay apart from the gradient. A thin layer over torch's fused kernels.
// Source: Loshchilov and Hutter 2019 (arXiv:1711.05101), algorithm 2; bias correction as in
// PyTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/trainer/optimizers/optimizer.h"

namespace hpo::trainer {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

// All parameters are float32.
class AdamW final : public Optimizer {
 public:
  // Allocates 8 bytes for each parameter element, and 4 for the step count.
  AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options);

  const std::vector<ParameterGroup>& groups() const override { return groups_; }
  void Step(double learning_rate) override;
  int64_t num_steps() const override { return num_steps_; }
  // "<parameter>.exp_avg", "<parameter>.exp_avg_sq".
  std::vector<NamedTensor> State() const override;
  void SetNumSteps(int64_t num_steps) override { num_steps_ = num_steps; }

 private:
  struct Moments {
    std::vector<torch::Tensor> first;
    std::vector<torch::Tensor> second;
  };

  std::vector<ParameterGroup> groups_;
  std::vector<Moments> moments_;  // one for each group
  torch::Tensor step_;            // float32 scalar on the parameters' device, shared by all
  int64_t num_steps_ = 0;
  AdamWOptions options_;
};

}  // namespace hpo::trainer
