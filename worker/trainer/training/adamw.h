// AdamW: Adam with weight decay apart from the gradient. A thin layer over torch's fused kernels.
//
// Never leaves parameters half updated: both moments are allocated by the constructor and Step
// allocates nothing, so that an out-of-memory error cannot come from it.
// Source: Loshchilov and Hutter 2019 (arXiv:1711.05101), algorithm 2; bias correction as in
// PyTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/trainer/torch_headers.h"

namespace hpo {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

// Parameters that share a weight decay.
struct ParameterGroup {
  std::vector<torch::Tensor> parameters;
  double weight_decay = 0.0;
};

// Two groups: weights decay by `weight_decay`; biases and LayerNorm's parameters do not.
std::vector<ParameterGroup> DecayGroups(const torch::nn::Module& model, double weight_decay);

// Not thread-safe. All parameters are float32 and on one device.
class AdamW {
 public:
  // Allocates 8 bytes for each parameter element, and 4 for the step count.
  AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options);

  // One update of every parameter from its gradient, which must be defined. Allocates no tensor.
  void Step(double learning_rate);

  // Frees every gradient.
  void ClearGradients();

  // Scales all gradients so that their joint 2-norm is at most `max_norm` (> 0; infinity: only
  // measures). Returns the norm before. May allocate a few kilobytes; changes no parameter.
  double ClipGradients(double max_norm);

 private:
  struct Moments {
    std::vector<torch::Tensor> first;
    std::vector<torch::Tensor> second;
  };

  std::vector<torch::Tensor> Gradients(const ParameterGroup& group) const;

  std::vector<ParameterGroup> groups_;
  std::vector<Moments> moments_;  // one for each group
  torch::Tensor step_;            // float32 scalar on the parameters' device, shared by all
  int64_t num_steps_ = 0;
  AdamWOptions options_;
};

}  // namespace hpo
