// The layers models are made of. Unlike torch::nn's they create their parameters directly on a
// device and leave them uninitialised: weights.h loads or initialises every parameter by name.
#pragma once

#include "worker/trainer/torch_headers.h"

namespace hpo {

// y = x W^T + b. weight: [out, in]; bias: [out].
class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(int64_t in_features, int64_t out_features, torch::Device device);
  torch::Tensor forward(const torch::Tensor& input);

  torch::Tensor weight;
  torch::Tensor bias;
};
TORCH_MODULE(Linear);

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

// Zeroes each element with `probability` and scales the others, when `training`; otherwise the
// input itself. Keeps a mask of one byte per element for backward, on every device (at::dropout
// would keep four on a CPU), so that one formula of memory holds for both.
torch::Tensor Dropout(const torch::Tensor& input, double probability, bool training);

}  // namespace hpo
