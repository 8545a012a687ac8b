// The end of the task head: 0 to 3 hidden layers (Linear, GELU, dropout), then one Linear to the
// labels. Without hidden layers its parameters are Hugging Face's "weight" and "bias", so that a
// trained model loads there; with them, hidden layer k is "hidden.k.weight" and "hidden.k.bias".
#pragma once

#include <vector>

#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {

struct HeadOptions {
  int64_t num_labels = 2;
  std::vector<int64_t> hidden_sizes;  // 0 to 3 widths
  double dropout = 0.1;               // on the pooled input, and after each hidden layer
  bool spans = false;                 // a layer beside it tells where spans begin and end
};

class ClassificationHeadImpl : public torch::nn::Module {
 public:
  ClassificationHeadImpl(int64_t in_features, const HeadOptions& options, torch::Device device,
                         bool with_bias = true);
  // pooled: [batch, in_features]. Result: logits, [batch, num_labels].
  torch::Tensor forward(const torch::Tensor& pooled);

  torch::Tensor weight;  // [num_labels, last width]
  torch::Tensor bias;    // [num_labels]; undefined without one

 private:
  torch::nn::ModuleList hidden_ = nullptr;
  double dropout_;
};
TORCH_MODULE(ClassificationHead);

}  // namespace hpo::trainer
