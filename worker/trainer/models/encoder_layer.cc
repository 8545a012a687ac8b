#include "worker/trainer/models/encoder_layer.h"

#include "common/models/model_modules.h"
#include "worker/trainer/models/layers/attention.h"

namespace hpo::trainer {

EncoderLayer::EncoderLayer(const ModelShape& shape, torch::Device device)
    : num_heads_(shape.num_heads),
      attention_dropout_(shape.attention_dropout),
      activation_(*ActivationOf(shape.hidden_act)),
      hidden_dropout_(shape.hidden_dropout) {
  const EncoderLayerModules& modules = EncoderLayerModulesOf(*ModelFamilyOf(shape.family));
  const int64_t hidden = shape.hidden_size;
  const auto linear = [&](const char* name, int64_t in_features, int64_t out_features) {
    return RegisterAt(*this, name, Linear(in_features, out_features, device));
  };
  const auto norm = [&](const char* name) {
    return RegisterAt(*this, name, LayerNorm(hidden, shape.layer_norm_eps, device));
  };
  dense_dropout_ = modules.attention_dropout ? hidden_dropout_ : 0.0;
  query_ = linear(modules.query, hidden, hidden);
  key_ = linear(modules.key, hidden, hidden);
  value_ = linear(modules.value, hidden, hidden);
  attention_dense_ = linear(modules.attention_dense, hidden, hidden);
  attention_norm_ = norm(modules.attention_norm);
  intermediate_ = linear(modules.intermediate, hidden, shape.intermediate_size);
  output_dense_ = linear(modules.output_dense, shape.intermediate_size, hidden);
  output_norm_ = norm(modules.output_norm);
}

torch::Tensor EncoderLayer::SplitHeads(const torch::Tensor& projected) const {
  return projected.view({projected.size(0), projected.size(1), num_heads_, -1}).transpose(1, 2);
}

torch::Tensor EncoderLayer::SelfAttention(const torch::Tensor& hidden,
                                          const LayerContext& context) {
  if (context.packed) {
    return AttendPacked(query_(hidden), key_(hidden), value_(hidden), context.packed,
                        {.heads = num_heads_, .dropout = is_training() ? attention_dropout_ : 0.0});
  }
  const torch::Tensor attended =
      Attend(SplitHeads(query_(hidden)), SplitHeads(key_(hidden)), SplitHeads(value_(hidden)),
             context.bias, attention_dropout_, is_training());
  return attended.transpose(1, 2).reshape(hidden.sizes());
}

torch::Tensor EncoderLayer::Close(Linear& dense, LayerNorm& norm, double dropout,
                                  const torch::Tensor& input, const torch::Tensor& residual) {
  return norm(Dropout(dense(input), dropout, is_training()) + residual);
}

torch::Tensor EncoderLayer::forward(const torch::Tensor& hidden, const LayerContext& context) {
  const torch::Tensor attended = Close(attention_dense_, attention_norm_, dense_dropout_,
                                       SelfAttention(hidden, context), hidden);
  return Close(output_dense_, output_norm_, hidden_dropout_,
               Activate(intermediate_(attended), activation_), attended);
}

}  // namespace hpo::trainer
