// Tested by tests/worker/trainer/models/tiny_models_golden_test.cc.
#include "worker/trainer/models/deberta_layer.h"

#include <cmath>

#include "worker/trainer/models/layers/attention.h"

namespace hpo::trainer {
namespace {

// Products of each of batch x tokens rows with each of 2 tokens - 1 distances, [heads, batch *
// tokens, 2 tokens - 1]: row i of each text moved left by tokens - 1 - i, and its first `tokens`
// columns: [heads, batch, tokens, tokens]. A view: rows that are one shorter start one later.
// Source: Dai et al. 2019 (arXiv:1901.02860), appendix B.
torch::Tensor ShiftRows(const torch::Tensor& products, int64_t batch, int64_t tokens) {
  const int64_t heads = products.size(0);
  if (tokens == 1) return products.view({heads, batch, 1, 1});
  const int64_t shorter = 2 * tokens - 2;
  return products.view({heads, batch, -1})
      .narrow(2, tokens - 1, tokens * shorter)
      .view({heads, batch, tokens, shorter})
      .narrow(3, 0, tokens);
}

}  // namespace

DebertaConvolutionImpl::DebertaConvolutionImpl(const ModelShape& shape, torch::Device device)
    : activation_(*ActivationOf(shape.conv_act)), dropout_(shape.hidden_dropout) {
  const auto float32 = torch::TensorOptions().dtype(torch::kFloat32).device(device);
  const int64_t hidden = shape.hidden_size;
  torch::nn::Module& conv = ModuleAt(*this, "conv");
  weight_ = conv.register_parameter("weight",
                                    at::empty({hidden, hidden, shape.conv_kernel_size}, float32));
  bias_ = conv.register_parameter("bias", at::empty({hidden}, float32));
  layer_norm_ = register_module("LayerNorm", LayerNorm(hidden, shape.layer_norm_eps, device));
}

// As a product: each token's neighbourhood becomes one row.
torch::Tensor DebertaConvolutionImpl::forward(const torch::Tensor& input,
                                              const torch::Tensor& residual,
                                              const torch::Tensor& mask) {
  const int64_t width = weight_.size(2);
  const int64_t before = (width - 1) / 2;
  const torch::Tensor tokens = input * mask.unsqueeze(-1).to(input.scalar_type());
  const torch::Tensor neighbours = at::constant_pad_nd(tokens, {0, 0, before, width - 1 - before})
                                       .unfold(/*dimension=*/1, width, /*step=*/1)
                                       .reshape({input.size(0), input.size(1), -1});
  const torch::Tensor mixed = at::linear(neighbours, weight_.view({weight_.size(0), -1}), bias_);
  return layer_norm_(residual + Activate(Dropout(mixed, dropout_, is_training()), activation_));
}

DebertaLayer::DebertaLayer(const ModelShape& shape, torch::Device device)
    : EncoderLayer(shape, device),
      relative_(shape.relative),
      position_dropout_(shape.hidden_dropout) {
  if (relative_.span == 0 || relative_.share_projections) return;
  const auto projection = [&](const char* name) {
    return RegisterAt(*this, name, Linear(shape.hidden_size, shape.hidden_size, device));
  };
  if (relative_.content_to_position) position_key_ = projection("attention.self.pos_key_proj");
  if (relative_.position_to_content) position_query_ = projection("attention.self.pos_query_proj");
}

torch::Tensor DebertaLayer::forward(const torch::Tensor& hidden, const LayerContext& context) {
  const torch::Tensor output = EncoderLayer::forward(hidden, context);
  return convolution_ ? convolution_(hidden, output, context.mask) : output;
}

torch::Tensor DebertaLayer::PositionScores(const torch::Tensor& tokens,
                                           const torch::Tensor& positions,
                                           const torch::Tensor& rows) const {
  const auto by_head = [this](const torch::Tensor& x) {
    return x.view({-1, num_heads_, x.size(-1) / num_heads_}).transpose(0, 1);
  };
  const torch::Tensor products =
      at::bmm(by_head(tokens), by_head(at::embedding(positions, rows)).transpose(1, 2));
  return ShiftRows(products, tokens.size(0), tokens.size(1));
}

torch::Tensor DebertaLayer::SelfAttention(const torch::Tensor& hidden,
                                          const LayerContext& context) {
  const torch::Tensor query = query_(hidden);
  const torch::Tensor key = key_(hidden);
  torch::Tensor scores = at::matmul(SplitHeads(query), SplitHeads(key).transpose(2, 3));
  int64_t terms = 1;
  if (context.relative.defined()) {
    const torch::Tensor relative = Dropout(context.relative, position_dropout_, is_training());
    if (relative_.content_to_position) {
      ++terms;
      Linear& project = position_key_ ? position_key_ : key_;
      scores.add_(PositionScores(query, project(relative), context.falling_rows).transpose(0, 1));
    }
    if (relative_.position_to_content) {
      ++terms;
      Linear& project = position_query_ ? position_query_ : query_;
      scores.add_(
          PositionScores(key, project(relative), context.rising_rows).permute({1, 0, 3, 2}));
    }
  }
  const double head_size = static_cast<double>(hidden.size(2) / num_heads_);
  const double scale = 1.0 / std::sqrt(head_size * static_cast<double>(terms));
  const torch::Tensor attended =
      AttendByScores(std::move(scores), SplitHeads(value_(hidden)), context.bias,
                     {.scale = scale, .dropout = is_training() ? attention_dropout_ : 0.0});
  return attended.transpose(1, 2).reshape(hidden.sizes());
}

}  // namespace hpo::trainer
