#include "worker/trainer/optimizers/sgd.h"

#include <utility>

namespace hpo::trainer {

Sgd::Sgd(std::vector<ParameterGroup> groups, double momentum)
    : groups_(std::move(groups)), buffers_(groups_.size()), momentum_(momentum) {
  if (momentum_ == 0.0) return;
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (const torch::Tensor& parameter : groups_[i].parameters) {
      buffers_[i].push_back(at::zeros_like(parameter));
    }
  }
}

void Sgd::Step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  ++num_steps_;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const ParameterGroup& group = groups_[i];
    if (group.parameters.empty()) continue;
    // A buffer of zeros becomes the gradient, as torch's does in its first step.
    at::_fused_sgd_(group.parameters, GradientsOf(group), buffers_[i], group.weight_decay,
                    momentum_, learning_rate, /*dampening=*/0.0, /*nesterov=*/false,
                    /*maximize=*/false, /*is_first_step=*/false);
  }
}

std::vector<NamedTensor> Sgd::State() const {
  std::vector<NamedTensor> state;
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (size_t k = 0; k < buffers_[i].size(); ++k) {
      state.emplace_back(groups_[i].names[k] + ".momentum_buffer", buffers_[i][k]);
    }
  }
  return state;
}

}  // namespace hpo::trainer
