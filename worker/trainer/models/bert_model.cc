#include "worker/trainer/models/bert_model.h"

#include <memory>

#include "common/models/model_modules.h"
#include "worker/trainer/models/encoder_layer.h"
#include "worker/trainer/models/layers/attention.h"

namespace hpo::trainer {

BertModel::BertModel(const ModelShape& shape, torch::Device device)
    : dropout_(shape.hidden_dropout) {
  const ModelFamily family = *ModelFamilyOf(shape.family);
  const bool is_roberta = family == ModelFamily::kRoberta;
  const int64_t width = shape.EmbeddingSize();
  const auto table = [&](const char* name, int64_t rows) {
    return RegisterAt(*this, name, Embedding(rows, width, device));
  };
  const auto make_positions = [&] {
    position_embeddings_ =
        table("embeddings.position_embeddings", shape.max_positions + UnusedPositions(shape));
  };
  // In the library's order, which RoBERTa's differs from.
  word_embeddings_ = table("embeddings.word_embeddings", shape.vocab_size);
  if (!is_roberta) make_positions();
  if (family != ModelFamily::kDistilBert) {
    token_type_embeddings_ = table("embeddings.token_type_embeddings", shape.type_vocab_size);
  }
  layer_norm_ =
      RegisterAt(*this, "embeddings.LayerNorm", LayerNorm(width, shape.layer_norm_eps, device));
  if (is_roberta) {
    make_positions();
    padding_position_ = shape.pad_token_id;
  }
  if (width != shape.hidden_size) {
    projection_ = RegisterAt(*this, "embeddings_project", Linear(width, shape.hidden_size, device));
  }
  AddLayers(ModulesOf(family).layers, shape.num_layers,
            [&](int64_t) { return std::make_shared<EncoderLayer>(shape, device); });
}

LayerContext BertModel::ContextOf(const ModelInput& input) {
  if (input.packed) return {.packed = input.packed};
  return {.bias = AttentionBias(input.mask)};
}

torch::Tensor BertModel::PositionsOf(const ModelInput& input) const {
  if (input.packed) {
    const torch::Tensor& positions = input.packed.positions;
    return padding_position_ < 0 ? positions : positions + (padding_position_ + 1);
  }
  if (padding_position_ < 0) return at::arange(input.ids.size(1), input.ids.options());
  return at::cumsum(input.mask, /*dim=*/1).mul_(input.mask).add_(padding_position_);
}

torch::Tensor BertModel::Embed(const ModelInput& input) {
  const torch::Tensor positions = PositionsOf(input);
  torch::Tensor sum = word_embeddings_(input.ids);
  if (token_type_embeddings_) sum = sum + token_type_embeddings_(input.type_ids);
  sum = sum + position_embeddings_(positions);
  const torch::Tensor embedded = Dropout(layer_norm_(sum), dropout_, is_training());
  return projection_ ? projection_(embedded) : embedded;
}

}  // namespace hpo::trainer
