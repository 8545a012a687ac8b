#include "worker/trainer/training/adamw.h"

#include <utility>

#include "absl/strings/match.h"
#include "common/status.h"

namespace hpo {

std::vector<ParameterGroup> DecayGroups(const torch::nn::Module& model, double weight_decay) {
  std::vector<ParameterGroup> groups = {{{}, weight_decay}, {{}, 0.0}};
  for (const auto& item : model.named_parameters()) {
    const bool decays =
        !absl::EndsWith(item.key(), "bias") && !absl::StrContains(item.key(), "LayerNorm");
    groups[decays ? 0 : 1].parameters.push_back(item.value());
  }
  return groups;
}

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

std::vector<torch::Tensor> AdamW::Gradients(const ParameterGroup& group) const {
  std::vector<torch::Tensor> gradients;
  gradients.reserve(group.parameters.size());
  for (const torch::Tensor& parameter : group.parameters) {
    HPO_CHECK(parameter.grad().defined());
    gradients.push_back(parameter.grad());
  }
  return gradients;
}

void AdamW::Step(double learning_rate) {
  const torch::NoGradGuard no_grad;
  step_.fill_(static_cast<double>(++num_steps_));
  for (size_t i = 0; i < groups_.size(); ++i) {
    const std::vector<torch::Tensor>& parameters = groups_[i].parameters;
    if (parameters.empty()) continue;
    const std::vector<torch::Tensor> steps(parameters.size(), step_);
    at::_fused_adamw_(parameters, Gradients(groups_[i]), moments_[i].first, moments_[i].second,
                      /*max_exp_avg_sqs=*/{}, steps, learning_rate, options_.beta1, options_.beta2,
                      groups_[i].weight_decay, options_.eps, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
}

void AdamW::ClearGradients() {
  for (ParameterGroup& group : groups_) {
    for (torch::Tensor& parameter : group.parameters) parameter.mutable_grad().reset();
  }
}

double AdamW::ClipGradients(double max_norm) {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> gradients;
  for (const ParameterGroup& group : groups_) {
    for (torch::Tensor& gradient : Gradients(group)) gradients.push_back(std::move(gradient));
  }
  const double norm =
      at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)), 2.0).item<double>();
  if (norm > max_norm) at::_foreach_mul_(gradients, max_norm / (norm + 1e-6));
  return norm;
}

}  // namespace hpo
