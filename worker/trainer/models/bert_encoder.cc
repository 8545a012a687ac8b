#include "worker/trainer/models/bert_encoder.h"

#include <algorithm>
#include <memory>
#include <string>

#include "worker/trainer/models/attention.h"
#include "worker/trainer/models/recomputation.h"

namespace hpo {
namespace {

// A module without own code: only a level in the parameters' names.
class NamespaceImpl : public torch::nn::Module {};
TORCH_MODULE(Namespace);

}  // namespace

BertEmbeddingsImpl::BertEmbeddingsImpl(const ModelShape& shape, torch::Device device)
    : word_embeddings_(register_module("word_embeddings",
                                       Embedding(shape.vocab_size, shape.hidden_size, device))),
      position_embeddings_(register_module(
          "position_embeddings", Embedding(shape.max_positions, shape.hidden_size, device))),
      token_type_embeddings_(register_module(
          "token_type_embeddings", Embedding(shape.type_vocab_size, shape.hidden_size, device))),
      layer_norm_(
          register_module("LayerNorm", LayerNorm(shape.hidden_size, shape.layer_norm_eps, device))),
      dropout_(shape.hidden_dropout) {}

torch::Tensor BertEmbeddingsImpl::forward(const EncoderInput& input) {
  const torch::Tensor positions = at::arange(input.ids.size(1), input.ids.options());
  torch::Tensor sum = word_embeddings_(input.ids);
  sum = sum + token_type_embeddings_(input.type_ids);
  sum = sum + position_embeddings_(positions);
  return Dropout(layer_norm_(sum), dropout_, is_training());
}

BertSelfAttentionImpl::BertSelfAttentionImpl(const ModelShape& shape, torch::Device device)
    : query_(register_module("query", Linear(shape.hidden_size, shape.hidden_size, device))),
      key_(register_module("key", Linear(shape.hidden_size, shape.hidden_size, device))),
      value_(register_module("value", Linear(shape.hidden_size, shape.hidden_size, device))),
      num_heads_(shape.num_heads),
      dropout_(shape.attention_dropout) {}

torch::Tensor BertSelfAttentionImpl::SplitHeads(const torch::Tensor& projected) const {
  return projected.view({projected.size(0), projected.size(1), num_heads_, -1}).transpose(1, 2);
}

torch::Tensor BertSelfAttentionImpl::forward(const torch::Tensor& hidden,
                                             const torch::Tensor& bias) {
  const torch::Tensor context = Attend(SplitHeads(query_(hidden)), SplitHeads(key_(hidden)),
                                       SplitHeads(value_(hidden)), bias, dropout_, is_training());
  return context.transpose(1, 2).reshape(hidden.sizes());
}

BertOutputImpl::BertOutputImpl(int64_t in_features, const ModelShape& shape, torch::Device device)
    : dense_(register_module("dense", Linear(in_features, shape.hidden_size, device))),
      layer_norm_(
          register_module("LayerNorm", LayerNorm(shape.hidden_size, shape.layer_norm_eps, device))),
      dropout_(shape.hidden_dropout) {}

torch::Tensor BertOutputImpl::forward(const torch::Tensor& input, const torch::Tensor& residual) {
  return layer_norm_(Dropout(dense_(input), dropout_, is_training()) + residual);
}

BertLayerImpl::BertLayerImpl(const ModelShape& shape, torch::Device device) {
  Namespace attention = register_module("attention", Namespace());
  self_attention_ = attention->register_module("self", BertSelfAttention(shape, device));
  attention_output_ =
      attention->register_module("output", BertOutput(shape.hidden_size, shape, device));
  Namespace intermediate = register_module("intermediate", Namespace());
  intermediate_ = intermediate->register_module(
      "dense", Linear(shape.hidden_size, shape.intermediate_size, device));
  output_ = register_module("output", BertOutput(shape.intermediate_size, shape, device));
}

torch::Tensor BertLayerImpl::forward(const torch::Tensor& hidden, const torch::Tensor& bias) {
  const torch::Tensor attended = attention_output_(self_attention_(hidden, bias), hidden);
  // The exact error function, not its tanh approximation: config.json's "gelu".
  return output_(at::gelu(intermediate_(attended)), attended);
}

BertModelImpl::BertModelImpl(const ModelShape& shape, torch::Device device)
    : embeddings_(register_module("embeddings", BertEmbeddings(shape, device))) {
  Namespace encoder = register_module("encoder", Namespace());
  layers_ = encoder->register_module("layer", torch::nn::ModuleList());
  for (int64_t i = 0; i < shape.num_layers; ++i) layers_->push_back(BertLayer(shape, device));
  Namespace pooler = register_module("pooler", Namespace());
  pooler_ = pooler->register_module("dense", Linear(shape.hidden_size, shape.hidden_size, device));
}

torch::Tensor BertModelImpl::RunLayers(int64_t first, int64_t count, torch::Tensor hidden,
                                       const torch::Tensor& bias) {
  for (int64_t i = first; i < first + count; ++i) {
    hidden = layers_[static_cast<size_t>(i)]->as<BertLayerImpl>()->forward(hidden, bias);
  }
  return hidden;
}

torch::Tensor BertModelImpl::forward(const EncoderInput& input,
                                     std::vector<torch::Tensor>* hidden_states,
                                     int64_t checkpoint_every) {
  const torch::Tensor bias = AttentionBias(input.mask);
  torch::Tensor hidden = embeddings_(input);
  if (hidden_states != nullptr) hidden_states->push_back(hidden);
  const auto num_layers = static_cast<int64_t>(layers_->size());
  const int64_t every = is_training() && hidden_states == nullptr ? checkpoint_every : 0;
  for (int64_t first = 0; first < num_layers;) {
    const int64_t count = std::min(std::max<int64_t>(every, 1), num_layers - first);
    const auto segment = [this, first, count, bias](const std::vector<torch::Tensor>& inputs) {
      return RunLayers(first, count, inputs.front(), bias);
    };
    hidden =
        every > 0 ? RunRecomputed(segment, {hidden}, /*has_parameters=*/true) : segment({hidden});
    if (hidden_states != nullptr) hidden_states->push_back(hidden);
    first += count;
  }
  return at::tanh(pooler_(hidden.select(/*dim=*/1, /*index=*/0)));
}

}  // namespace hpo
