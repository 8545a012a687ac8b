// A layer of DeBERTa: BERT's, but for its attention, and a convolution beside the first of them.
#pragma once

#include <cstdint>

#include "worker/trainer/models/encoder_layer.h"

namespace hpo::trainer {

// Local mixing of neighbours (v2's xlarge models): LayerNorm(residual + act(conv(input))).
class DebertaConvolutionImpl : public torch::nn::Module {
 public:
  DebertaConvolutionImpl(const ModelShape& shape, torch::Device device);
  // input, residual: [batch, tokens, hidden_size]; mask: [batch, tokens]. Result: as input.
  torch::Tensor forward(const torch::Tensor& input, const torch::Tensor& residual,
                        const torch::Tensor& mask);

 private:
  torch::Tensor weight_;  // [hidden_size, hidden_size, width]
  torch::Tensor bias_;
  LayerNorm layer_norm_ = nullptr;
  Activation activation_;
  double dropout_;
};
TORCH_MODULE(DebertaConvolution);

// Scores are sums of up to three products: of contents, of contents with positions (c2p), of
// positions with contents (p2c); written out on every device.
class DebertaLayer final : public EncoderLayer {
 public:
  DebertaLayer(const ModelShape& shape, torch::Device device);

  // `convolution` is registered elsewhere.
  void ConvolveAfter(DebertaConvolution convolution) { convolution_ = std::move(convolution); }

  torch::Tensor forward(const torch::Tensor& hidden, const LayerContext& context) override;

 private:
  torch::Tensor SelfAttention(const torch::Tensor& hidden, const LayerContext& context) override;
  // Products of `tokens` (projected, [batch, tokens, hidden_size]) with the position that each of
  // `rows` names, one for every distance; shifted so that [.., i, j] is that of token i with
  // distance number tokens - 1 - i + j. Result: [heads, batch, tokens, tokens], a view.
  torch::Tensor PositionScores(const torch::Tensor& tokens, const torch::Tensor& positions,
                               const torch::Tensor& rows) const;

  RelativeAttention relative_;
  Linear position_key_ = nullptr;  // null: the contents' projections serve
  Linear position_query_ = nullptr;
  double position_dropout_;
  DebertaConvolution convolution_ = nullptr;
};

}  // namespace hpo::trainer
