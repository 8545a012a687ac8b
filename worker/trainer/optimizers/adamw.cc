#include "worker/trainer/optimizers/adamw.h"

#include <utility>

#include "common/base/status.h"

namespace hpo::trainer {

AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options)
    : groups_(std::move(groups)), options_(options) {
  const torch::NoGradGuard no_grad;
  for (const ParameterGroup& group : groups_) {
    Moments moments;
    for (const torch::Tensor& parameter : group.parameters) {
      moments.first.push_back(at::zeros_like(parameter));
      moments.second.push_back(at::zeros_like(parameter));
      if (!step_.defined()) step_ = at::zeros({}, parameter.options().requires_grad(false));
    }
    moments_.push_back(std::move(moments));
  }
  HPO_CHECK(step_.defined());
}

void AdamW::Step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  step_.fill_(static_cast<double>(++num_steps_));
  for (size_t i = 0; i < groups_.size(); ++i) {
    const std::vector<torch::Tensor>& parameters = groups_[i].parameters;
    if (parameters.empty()) continue;
    const std::vector<torch::Tensor> steps(parameters.size(), step_);
    at::_fused_adamw_(parameters, GradientsOf(groups_[i]), moments_[i].first, moments_[i].second,
                      /*max_exp_avg_sqs=*/{}, steps, learning_rate, options_.beta1, options_.beta2,
                      groups_[i].weight_decay, options_.eps, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
}

std::vector<NamedTensor> AdamW::State() const {
  std::vector<NamedTensor> state;
  for (size_t i = 0; i < groups_.size(); ++i) {
    for (size_t k = 0; k < groups_[i].names.size(); ++k) {
      state.emplace_back(groups_[i].names[k] + ".exp_avg", moments_[i].first[k]);
      state.emplace_back(groups_[i].names[k] + ".exp_avg_sq", moments_[i].second[k]);
    }
  }
  return state;
}

}  // namespace hpo::trainer
