// The layers that all models are made of. Unlike torch::nn's they create their parameters directly
// on a device and leave them uninitialised: weights.h loads or initialises every parameter by name.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/models/activation.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/layers/low_rank_adapter.h"

namespace hpo::trainer {

// y = x W^T + b. weight: [out, in]; bias: [out], undefined without one.
class LinearImpl : public AdaptableLayer {
 public:
  LinearImpl(int64_t in_features, int64_t out_features, torch::Device device,
             bool with_bias = true);
  torch::Tensor forward(const torch::Tensor& input);

  torch::Tensor weight;
  torch::Tensor bias;
};
TORCH_MODULE(Linear);

// y = x W + b, as GPT-2 stores its layers. weight: [in, out]; bias: [out].
class TransposedLinearImpl : public AdaptableLayer {
 public:
  TransposedLinearImpl(int64_t in_features, int64_t out_features, torch::Device device);
  torch::Tensor forward(const torch::Tensor& input);
  torch::Tensor ByOutputs(const torch::Tensor& tensor) const override { return tensor.t(); }

  torch::Tensor weight;
  torch::Tensor bias;
};
TORCH_MODULE(TransposedLinear);

// Rows of a table. weight: [rows, width].
class EmbeddingImpl : public torch::nn::Module {
 public:
  EmbeddingImpl(int64_t rows, int64_t width, torch::Device device);
  // indices: int64, any shape; result: that shape and `width`.
  torch::Tensor forward(const torch::Tensor& indices);

  torch::Tensor weight;
};
TORCH_MODULE(Embedding);

// Normalises the last dimension. weight, bias: [width].
class LayerNormImpl : public torch::nn::Module {
 public:
  LayerNormImpl(int64_t width, double eps, torch::Device device);
  torch::Tensor forward(const torch::Tensor& input);

  torch::Tensor weight;
  torch::Tensor bias;

 private:
  double eps_;
};
TORCH_MODULE(LayerNorm);

// Divides the last dimension by its root mean square. weight: [width].
// Source: Zhang and Sennrich 2019 (arXiv:1910.07467).
class RmsNormImpl : public torch::nn::Module {
 public:
  RmsNormImpl(int64_t width, double eps, torch::Device device);
  torch::Tensor forward(const torch::Tensor& input);

  torch::Tensor weight;

 private:
  double eps_;
};
TORCH_MODULE(RmsNorm);

torch::Tensor Activate(const torch::Tensor& input, Activation activation);

// Zeroes each element with `probability` and scales the others, when `training`; otherwise the
// input itself. Keeps a mask of one byte per element for backward, on every device.
torch::Tensor Dropout(const torch::Tensor& input, double probability, bool training);

// The module that closes a path below `root` ("attention.self"), with a level of its own for each
// name on the way that is not there yet.
torch::nn::Module& ModuleAt(torch::nn::Module& root, absl::string_view path);

// Registers `module` below `root` under a path of names ("attention.self.query"); returns it.
template <typename Holder>
Holder RegisterAt(torch::nn::Module& root, absl::string_view path, Holder module) {
  const size_t dot = path.rfind('.');
  torch::nn::Module& parent =
      dot == absl::string_view::npos ? root : ModuleAt(root, path.substr(0, dot));
  return parent.register_module(
      std::string(path.substr(dot == absl::string_view::npos ? 0 : dot + 1)), std::move(module));
}

}  // namespace hpo::trainer
