#include "worker/trainer/models/layers.h"

namespace hpo {
namespace {

torch::TensorOptions ParameterOptions(torch::Device device) {
  return torch::TensorOptions().dtype(torch::kFloat32).device(device);
}

}  // namespace

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, torch::Device device)
    : weight(register_parameter("weight",
                                at::empty({out_features, in_features}, ParameterOptions(device)))),
      bias(register_parameter("bias", at::empty({out_features}, ParameterOptions(device)))) {}

torch::Tensor LinearImpl::forward(const torch::Tensor& input) {
  return at::linear(input, weight, bias);
}

EmbeddingImpl::EmbeddingImpl(int64_t rows, int64_t width, torch::Device device)
    : weight(register_parameter("weight", at::empty({rows, width}, ParameterOptions(device)))) {}

torch::Tensor EmbeddingImpl::forward(const torch::Tensor& indices) {
  return at::embedding(weight, indices);
}

LayerNormImpl::LayerNormImpl(int64_t width, double eps, torch::Device device)
    : weight(register_parameter("weight", at::empty({width}, ParameterOptions(device)))),
      bias(register_parameter("bias", at::empty({width}, ParameterOptions(device)))),
      eps_(eps) {}

torch::Tensor LayerNormImpl::forward(const torch::Tensor& input) {
  return at::layer_norm(input, {weight.size(0)}, weight, bias, eps_);
}

torch::Tensor Dropout(const torch::Tensor& input, double probability, bool training) {
  if (!training || probability == 0.0) return input;
  return std::get<0>(at::native_dropout(input, probability, /*train=*/true));
}

}  // namespace hpo
