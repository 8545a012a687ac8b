#include "worker/trainer/models/classification_head.h"

namespace hpo::trainer {

ClassificationHeadImpl::ClassificationHeadImpl(int64_t in_features, const HeadOptions& options,
                                               torch::Device device, bool with_bias)
    : dropout_(options.dropout) {
  int64_t width = in_features;
  hidden_ = torch::nn::ModuleList();
  for (const int64_t size : options.hidden_sizes) {
    hidden_->push_back(Linear(width, size, device));
    width = size;
  }
  register_module("hidden", hidden_);
  const auto float32 = torch::TensorOptions().dtype(torch::kFloat32).device(device);
  weight = register_parameter("weight", at::empty({options.num_labels, width}, float32));
  if (with_bias) bias = register_parameter("bias", at::empty({options.num_labels}, float32));
}

torch::Tensor ClassificationHeadImpl::forward(const torch::Tensor& pooled) {
  torch::Tensor features = Dropout(pooled, dropout_, is_training());
  for (const auto& layer : *hidden_) {
    features =
        Dropout(at::gelu(layer->as<LinearImpl>()->forward(features)), dropout_, is_training());
  }
  return at::linear(features, weight, bias);
}

}  // namespace hpo::trainer
