// Tested by tests/worker/trainer/models/tiny_models_golden_test.cc.
#include "worker/trainer/models/layers/layers.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "worker/trainer/models/layers/base_storage.h"
#include "worker/trainer/models/layers/cpu_dropout.h"

namespace hpo::trainer {
namespace {

// A module without own code: only a level in the parameters' names.
class Level : public torch::nn::Module {};

torch::Tensor NewParameter(at::IntArrayRef shape, torch::Device device,
                           torch::ScalarType type = torch::kFloat32) {
  return at::empty(shape, torch::TensorOptions().dtype(type).device(device));
}

}  // namespace

LinearImpl::LinearImpl(int64_t in_features, int64_t out_features, torch::Device device,
                       bool with_bias)
    : weight(MakeWeight({out_features, in_features}, device)) {
  if (with_bias) bias = register_parameter("bias", NewParameter({out_features}, device));
}

torch::Tensor LinearImpl::forward(const torch::Tensor& input) {
  return Adapted(stored() != nullptr ? StoredProduct(input, stored(), bias, /*transposed=*/false)
                                     : at::linear(input, weight, bias),
                 input);
}

TransposedLinearImpl::TransposedLinearImpl(int64_t in_features, int64_t out_features,
                                           torch::Device device)
    : weight(MakeWeight({in_features, out_features}, device)),
      bias(register_parameter("bias", NewParameter({out_features}, device))) {}

torch::Tensor TransposedLinearImpl::forward(const torch::Tensor& input) {
  if (stored() != nullptr) {
    return Adapted(StoredProduct(input, stored(), bias, /*transposed=*/true), input);
  }
  std::vector<int64_t> shape = input.sizes().vec();
  shape.back() = weight.size(1);
  return Adapted(at::addmm(bias, input.view({-1, weight.size(0)}), weight).view(shape), input);
}

EmbeddingImpl::EmbeddingImpl(int64_t rows, int64_t width, torch::Device device)
    : weight(register_parameter(
          "weight", NewParameter({rows, width}, device, BaseStorageScope::EmbeddingType()))) {}

torch::Tensor EmbeddingImpl::forward(const torch::Tensor& indices) {
  return at::embedding(weight, indices).to(torch::kFloat32);
}

LayerNormImpl::LayerNormImpl(int64_t width, double eps, torch::Device device)
    : weight(register_parameter("weight", NewParameter({width}, device))),
      bias(register_parameter("bias", NewParameter({width}, device))),
      eps_(eps) {}

torch::Tensor LayerNormImpl::forward(const torch::Tensor& input) {
  return at::layer_norm(input, {weight.size(0)}, weight, bias, eps_);
}

RmsNormImpl::RmsNormImpl(int64_t width, double eps, torch::Device device)
    : weight(register_parameter("weight", NewParameter({width}, device))), eps_(eps) {}

torch::Tensor RmsNormImpl::forward(const torch::Tensor& input) {
  return at::rms_norm(input, {weight.size(0)}, weight, eps_);
}

torch::Tensor Activate(const torch::Tensor& input, Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return at::relu(input);
    case Activation::kGelu:
      return at::gelu(input);
    case Activation::kGeluTanh:
      return at::gelu(input, "tanh");
    case Activation::kSilu:
      return at::silu(input);
    case Activation::kTanh:
      break;
  }
  return at::tanh(input);
}

torch::Tensor Dropout(const torch::Tensor& input, double probability, bool training) {
  if (!training || probability == 0.0) return input;
  return input.is_cpu() ? CpuDropout(input, probability)
                        : std::get<0>(at::native_dropout(input, probability, /*train=*/true));
}

torch::nn::Module& ModuleAt(torch::nn::Module& root, absl::string_view path) {
  torch::nn::Module* module = &root;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    const std::string name(part);
    const std::shared_ptr<torch::nn::Module>* child = module->named_children().find(name);
    module = child != nullptr ? child->get()
                              : module->register_module(name, std::make_shared<Level>()).get();
  }
  return *module;
}

}  // namespace hpo::trainer
