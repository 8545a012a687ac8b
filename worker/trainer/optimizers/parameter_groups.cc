#include "worker/trainer/optimizers/parameter_groups.h"

#include <cmath>
#include <utility>

#include "common/base/status.h"

namespace hpo::trainer {

std::vector<ParameterGroup> DecayGroups(const torch::nn::Module& model, double weight_decay) {
  std::vector<ParameterGroup> groups(2);
  groups[0].weight_decay = weight_decay;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    // Vectors are biases and the weights of norms.
    const bool decays = item.value().dim() > 1;
    ParameterGroup& group = groups[decays ? 0 : 1];
    group.names.push_back(item.key());
    group.parameters.push_back(item.value());
  }
  return groups;
}

std::vector<torch::Tensor> GradientsOf(const ParameterGroup& group) {
  std::vector<torch::Tensor> gradients;
  gradients.reserve(group.parameters.size());
  for (const torch::Tensor& parameter : group.parameters) {
    HPO_CHECK(parameter.grad().defined());
    gradients.push_back(parameter.grad());
  }
  return gradients;
}

void ClearGradients(std::span<const ParameterGroup> groups) {
  for (const ParameterGroup& group : groups) {
    for (const torch::Tensor& parameter : group.parameters) parameter.mutable_grad().reset();
  }
}

namespace {

std::vector<torch::Tensor> AllGradients(std::span<const ParameterGroup> groups) {
  std::vector<torch::Tensor> gradients;
  for (const ParameterGroup& group : groups) {
    for (torch::Tensor& gradient : GradientsOf(group)) gradients.push_back(std::move(gradient));
  }
  return gradients;
}

constexpr double kNormEpsilon = 1e-6;

}  // namespace

double ClipGradients(std::span<const ParameterGroup> groups, double max_norm, double loss_scale) {
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> gradients = AllGradients(groups);
  const double norm =
      at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)), 2.0).item<double>() /
      loss_scale;
  double factor = 1.0 / loss_scale;
  if (norm > max_norm) factor *= max_norm / (norm + kNormEpsilon);
  if (factor != 1.0 && std::isfinite(norm)) at::_foreach_mul_(gradients, factor);
  return norm;
}

torch::Tensor ClipGradientsUnread(std::span<const ParameterGroup> groups, double max_norm) {
  const torch::NoGradGuard no_grad;
  const std::vector<torch::Tensor> gradients = AllGradients(groups);
  const torch::Tensor norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)), 2.0);
  const torch::Tensor exact = norm.to(torch::kFloat64);
  // As a tensor: a number over a tensor is a product with its reciprocal, which rounds differently.
  const torch::Tensor most = at::full_like(exact, max_norm);
  const torch::Tensor factor = at::where(exact > most, most / (exact + kNormEpsilon), 1.0);
  at::_foreach_mul_(gradients, factor.to(torch::kFloat32));
  return norm;
}

}  // namespace hpo::trainer
