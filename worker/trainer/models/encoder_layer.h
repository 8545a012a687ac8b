// A post-norm layer, as BERT and all its descendants have it: attention and a feed-forward network,
// each closed by a residual sum and LayerNorm. Names come from common/models/model_modules.
// Source: Vaswani et al. 2017 (arXiv:1706.03762); Devlin et al. 2018 (arXiv:1810.04805).
#pragma once

#include "common/models/activation.h"
#include "common/models/model_spec.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/backbone.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {

class EncoderLayer : public TransformerLayer {
 public:
  EncoderLayer(const ModelShape& shape, torch::Device device);
  torch::Tensor forward(const torch::Tensor& hidden, const LayerContext& context) override;

 protected:
  // [batch, tokens, hidden_size] to [batch, heads, tokens, head_size], a view.
  torch::Tensor SplitHeads(const torch::Tensor& projected) const;
  // The heads' outputs side by side: of `hidden`'s shape. Takes packed rows.
  virtual torch::Tensor SelfAttention(const torch::Tensor& hidden, const LayerContext& context);

  Linear query_ = nullptr;
  Linear key_ = nullptr;
  Linear value_ = nullptr;
  int64_t num_heads_;
  double attention_dropout_;

 private:
  // dense, dropout, residual sum, LayerNorm: closes both halves of a layer.
  torch::Tensor Close(Linear& dense, LayerNorm& norm, double dropout, const torch::Tensor& input,
                      const torch::Tensor& residual);

  Linear attention_dense_ = nullptr;
  LayerNorm attention_norm_ = nullptr;
  Linear intermediate_ = nullptr;
  Linear output_dense_ = nullptr;
  LayerNorm output_norm_ = nullptr;
  Activation activation_;
  double hidden_dropout_;
  double dense_dropout_;  // after attention's dense layer
};

}  // namespace hpo::trainer
