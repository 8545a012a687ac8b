// Tested by tests/worker/trainer/models/tiny_models_golden_test.cc.
#include "worker/trainer/models/llama_model.h"

#include <cmath>
#include <memory>
#include <numbers>

#include "common/models/model_modules.h"
#include "worker/trainer/models/layers/attention.h"

namespace hpo::trainer {
namespace {

// x: [batch, heads, tokens, head_size]; pairs are halves apart.
torch::Tensor Rotate(const torch::Tensor& x, const LayerContext& context) {
  const int64_t half = x.size(3) / 2;
  const torch::Tensor first = x.narrow(3, 0, half);
  const torch::Tensor second = x.narrow(3, half, half);
  const torch::Tensor turned = at::cat({second.neg(), first}, /*dim=*/3);
  return (x * context.cosines).add_(turned * context.sines);
}

// Each head `times` times in a row.
torch::Tensor RepeatHeads(const torch::Tensor& x, int64_t times) {
  if (times == 1) return x;
  return x.unsqueeze(2)
      .expand({-1, -1, times, -1, -1})
      .reshape({x.size(0), x.size(1) * times, x.size(2), x.size(3)});
}

class LlamaLayer final : public TransformerLayer {
 public:
  LlamaLayer(const ModelShape& shape, torch::Device device)
      : head_size_(shape.HeadSize()),
        groups_(shape.num_heads / shape.KeyValueHeads()),
        activation_(*ActivationOf(shape.hidden_act)),
        dropout_(shape.attention_dropout) {
    const int64_t hidden = shape.hidden_size;
    const int64_t queries = shape.num_heads * head_size_;
    const int64_t keys = shape.KeyValueHeads() * head_size_;
    const bool qkv_bias =
        shape.attention_bias || *ModelFamilyOf(shape.family) == ModelFamily::kQwen2;
    const auto linear = [&](const char* name, int64_t in_features, int64_t out_features,
                            bool bias) {
      return RegisterAt(*this, name, Linear(in_features, out_features, device, bias));
    };
    query_ = linear("self_attn.q_proj", hidden, queries, qkv_bias);
    key_ = linear("self_attn.k_proj", hidden, keys, qkv_bias);
    value_ = linear("self_attn.v_proj", hidden, keys, qkv_bias);
    attention_dense_ = linear("self_attn.o_proj", queries, hidden, shape.attention_bias);
    gate_ = linear("mlp.gate_proj", hidden, shape.intermediate_size, shape.mlp_bias);
    up_ = linear("mlp.up_proj", hidden, shape.intermediate_size, shape.mlp_bias);
    down_ = linear("mlp.down_proj", shape.intermediate_size, hidden, shape.mlp_bias);
    attention_norm_ =
        RegisterAt(*this, "input_layernorm", RmsNorm(hidden, shape.layer_norm_eps, device));
    forward_norm_ = RegisterAt(*this, "post_attention_layernorm",
                               RmsNorm(hidden, shape.layer_norm_eps, device));
  }

  torch::Tensor forward(const torch::Tensor& hidden, const LayerContext& context) override {
    const torch::Tensor attended =
        attention_dense_(SelfAttention(attention_norm_(hidden), context)) + hidden;
    return FeedForward(forward_norm_(attended)) + attended;
  }

 private:
  torch::Tensor Heads(const torch::Tensor& projected) const {
    return projected.view({projected.size(0), projected.size(1), -1, head_size_}).transpose(1, 2);
  }

  torch::Tensor SelfAttention(const torch::Tensor& hidden, const LayerContext& context) {
    const torch::Tensor query = Rotate(Heads(query_(hidden)), context);
    const torch::Tensor key = RepeatHeads(Rotate(Heads(key_(hidden)), context), groups_);
    const torch::Tensor value = RepeatHeads(Heads(value_(hidden)), groups_);
    const torch::Tensor attended = Attend(query, key, value, context.bias, dropout_, is_training());
    return attended.transpose(1, 2).reshape({hidden.size(0), hidden.size(1), -1});
  }

  torch::Tensor FeedForward(const torch::Tensor& input) {
    const torch::Tensor gate = Activate(gate_(input), activation_);
    return down_(gate * up_(input));
  }

  int64_t head_size_;
  int64_t groups_;  // query heads that share a key head
  Linear query_ = nullptr;
  Linear key_ = nullptr;
  Linear value_ = nullptr;
  Linear attention_dense_ = nullptr;
  Linear gate_ = nullptr;
  Linear up_ = nullptr;
  Linear down_ = nullptr;
  RmsNorm attention_norm_ = nullptr;
  RmsNorm forward_norm_ = nullptr;
  Activation activation_;
  double dropout_;
};

// Of one frequency, as Llama 3 stretches it.
float Stretched(float frequency, const RopeScaling& rope) {
  const auto factor = static_cast<float>(rope.factor);
  if (rope.original_positions == 0) return frequency / factor;
  const auto original = static_cast<float>(rope.original_positions);
  const auto low = static_cast<float>(rope.low_frequency);
  const auto high = static_cast<float>(rope.high_frequency);
  const float wave_length = 2.0f * std::numbers::pi_v<float> / frequency;
  if (wave_length < original / high) return frequency;
  if (wave_length > original / low) return frequency / factor;
  const float smooth = (original / wave_length - low) / (high - low);
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

}  // namespace

std::vector<float> RotaryFrequencies(const ModelShape& shape) {
  std::vector<float> frequencies;
  const auto size = static_cast<float>(shape.HeadSize());
  for (int64_t i = 0; i < shape.HeadSize(); i += 2) {
    const float power =
        std::pow(static_cast<float>(shape.rope_theta), static_cast<float>(i) / size);
    frequencies.push_back(Stretched(1.0f / power, shape.rope));
  }
  return frequencies;
}

LlamaModel::LlamaModel(const ModelShape& shape, torch::Device device) {
  word_embeddings_ =
      register_module("embed_tokens", Embedding(shape.vocab_size, shape.hidden_size, device));
  AddLayers(ModulesOf(ModelFamily::kLlama).layers, shape.num_layers,
            [&](int64_t) { return std::make_shared<LlamaLayer>(shape, device); });
  last_norm_ = register_module("norm", RmsNorm(shape.hidden_size, shape.layer_norm_eps, device));
  std::vector<float> frequencies = RotaryFrequencies(shape);
  frequencies_ = at::empty({static_cast<int64_t>(frequencies.size())},
                           torch::TensorOptions(torch::kFloat32).device(device));
  frequencies_.copy_(at::from_blob(frequencies.data(), frequencies_.sizes(), torch::kFloat32));
}

LayerContext LlamaModel::ContextOf(const ModelInput& input) {
  const torch::Tensor positions = at::arange(input.ids.size(1), frequencies_.options());
  const torch::Tensor half = at::outer(positions, frequencies_);
  const torch::Tensor angles = at::cat({half, half}, /*dim=*/1);
  return {.bias = CausalBias(input.mask), .cosines = angles.cos(), .sines = angles.sin()};
}

}  // namespace hpo::trainer
