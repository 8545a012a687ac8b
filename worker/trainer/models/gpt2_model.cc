#include "worker/trainer/models/gpt2_model.h"

#include <memory>
#include <vector>

#include "common/models/model_modules.h"
#include "worker/trainer/models/layers/attention.h"

namespace hpo::trainer {
namespace {

class Gpt2Layer final : public TransformerLayer {
 public:
  Gpt2Layer(const ModelShape& shape, torch::Device device)
      : num_heads_(shape.num_heads),
        activation_(*ActivationOf(shape.hidden_act)),
        hidden_dropout_(shape.hidden_dropout),
        attention_dropout_(shape.attention_dropout) {
    const int64_t hidden = shape.hidden_size;
    const auto norm = [&](const char* name) {
      return RegisterAt(*this, name, LayerNorm(hidden, shape.layer_norm_eps, device));
    };
    const auto linear = [&](const char* name, int64_t in_features, int64_t out_features) {
      return RegisterAt(*this, name, TransposedLinear(in_features, out_features, device));
    };
    attention_norm_ = norm("ln_1");
    projections_ = linear("attn.c_attn", hidden, 3 * hidden);
    attention_dense_ = linear("attn.c_proj", hidden, hidden);
    forward_norm_ = norm("ln_2");
    inner_ = linear("mlp.c_fc", hidden, shape.intermediate_size);
    outer_ = linear("mlp.c_proj", shape.intermediate_size, hidden);
  }

  torch::Tensor forward(const torch::Tensor& hidden, const LayerContext& context) override {
    const torch::Tensor attended =
        Drop(attention_dense_(SelfAttention(attention_norm_(hidden), context))) + hidden;
    return Drop(outer_(Activate(inner_(forward_norm_(attended)), activation_))) + attended;
  }

 private:
  torch::Tensor Drop(const torch::Tensor& input) const {
    return Dropout(input, hidden_dropout_, is_training());
  }

  torch::Tensor Heads(const torch::Tensor& projected) const {
    return projected.view({projected.size(0), projected.size(1), num_heads_, -1}).transpose(1, 2);
  }

  torch::Tensor SelfAttention(const torch::Tensor& hidden, const LayerContext& context) {
    const std::vector<torch::Tensor> projected =
        projections_(hidden).split(hidden.size(2), /*dim=*/2);
    const torch::Tensor attended =
        Attend(Heads(projected[0]), Heads(projected[1]), Heads(projected[2]), context.bias,
               attention_dropout_, is_training());
    return attended.transpose(1, 2).reshape(hidden.sizes());
  }

  int64_t num_heads_;
  LayerNorm attention_norm_ = nullptr;
  TransposedLinear projections_ = nullptr;  // query, key and value, one after the other
  TransposedLinear attention_dense_ = nullptr;
  LayerNorm forward_norm_ = nullptr;
  TransposedLinear inner_ = nullptr;
  TransposedLinear outer_ = nullptr;
  Activation activation_;
  double hidden_dropout_;
  double attention_dropout_;
};

}  // namespace

Gpt2Model::Gpt2Model(const ModelShape& shape, torch::Device device)
    : dropout_(shape.embedding_dropout) {
  const int64_t hidden = shape.hidden_size;
  word_embeddings_ = register_module("wte", Embedding(shape.vocab_size, hidden, device));
  position_embeddings_ = register_module("wpe", Embedding(shape.max_positions, hidden, device));
  AddLayers(ModulesOf(ModelFamily::kGpt2).layers, shape.num_layers,
            [&](int64_t) { return std::make_shared<Gpt2Layer>(shape, device); });
  last_norm_ = register_module("ln_f", LayerNorm(hidden, shape.layer_norm_eps, device));
}

LayerContext Gpt2Model::ContextOf(const ModelInput& input) {
  return {.bias = CausalBias(input.mask)};
}

torch::Tensor Gpt2Model::Embed(const ModelInput& input) {
  const torch::Tensor positions = at::arange(input.ids.size(1), input.ids.options());
  return Dropout(word_embeddings_(input.ids) + position_embeddings_(positions), dropout_,
                 is_training());
}

}  // namespace hpo::trainer
