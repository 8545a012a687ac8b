#include "worker/trainer/models/deberta_model.h"

#include <memory>

#include "common/models/model_modules.h"
#include "common/models/relative_positions.h"
#include "worker/trainer/models/deberta_layer.h"
#include "worker/trainer/models/layers/attention.h"

namespace hpo::trainer {

DebertaModel::DebertaModel(const ModelShape& shape, torch::Device device)
    : dropout_(shape.hidden_dropout) {
  MakeEmbeddings(shape, device);
  std::shared_ptr<DebertaLayer> first;
  AddLayers(ModulesOf(ModelFamily::kDeberta).layers, shape.num_layers, [&](int64_t i) {
    auto layer = std::make_shared<DebertaLayer>(shape, device);
    if (i == 0) first = layer;
    return layer;
  });
  const int64_t hidden = shape.hidden_size;
  if (shape.relative.span > 0) {
    relative_embeddings_ = RegisterAt(*this, "encoder.rel_embeddings",
                                      Embedding(2 * shape.relative.span, hidden, device));
    for (int64_t distance = shape.max_positions - 1; distance > -shape.max_positions; --distance) {
      rows_.push_back(RelativeRow(shape.relative, shape.max_positions, distance));
    }
  }
  if (shape.relative_norm) {
    relative_norm_ =
        RegisterAt(*this, "encoder.LayerNorm", LayerNorm(hidden, shape.layer_norm_eps, device));
  }
  if (shape.conv_kernel_size > 0) {
    first->ConvolveAfter(RegisterAt(*this, "encoder.conv", DebertaConvolution(shape, device)));
  }
  if (!rows_.empty()) {
    device_rows_ = at::empty({static_cast<int64_t>(rows_.size())},
                             torch::TensorOptions(torch::kInt64).device(device));
    device_rows_.copy_(at::from_blob(rows_.data(), device_rows_.sizes(), torch::kInt64));
  }
}

void DebertaModel::MakeEmbeddings(const ModelShape& shape, torch::Device device) {
  const int64_t width = shape.EmbeddingSize();
  const auto table = [&](const char* name, int64_t rows) {
    return RegisterAt(*this, name, Embedding(rows, width, device));
  };
  word_embeddings_ = table("embeddings.word_embeddings", shape.vocab_size);
  if (!shape.no_positions) {
    position_embeddings_ = table("embeddings.position_embeddings", shape.max_positions);
  }
  if (shape.type_vocab_size > 0) {
    token_type_embeddings_ = table("embeddings.token_type_embeddings", shape.type_vocab_size);
  }
  if (width != shape.hidden_size) {
    projection_ = RegisterAt(*this, "embeddings.embed_proj",
                             Linear(width, shape.hidden_size, device, /*with_bias=*/false));
  }
  layer_norm_ = RegisterAt(*this, "embeddings.LayerNorm",
                           LayerNorm(shape.hidden_size, shape.layer_norm_eps, device));
}

// Of the relative table only what this many tokens reach: a stretch of rows around the middle.
LayerContext DebertaModel::ContextOf(const ModelInput& input) {
  LayerContext context{.bias = AttentionBias(input.mask), .mask = input.mask};
  if (!relative_embeddings_) return context;
  const int64_t tokens = input.ids.size(1);
  const int64_t middle = static_cast<int64_t>(rows_.size()) / 2;
  const auto row_of = [&](int64_t distance) {
    return rows_[static_cast<size_t>(middle - distance)];
  };
  const int64_t first = row_of(1 - tokens);
  context.relative = relative_embeddings_->weight.narrow(0, first, row_of(tokens - 1) - first + 1)
                         .to(torch::kFloat32);
  if (relative_norm_) context.relative = relative_norm_(context.relative);
  context.falling_rows = device_rows_.narrow(0, middle - (tokens - 1), 2 * tokens - 1).sub(first);
  context.rising_rows = context.falling_rows.flip(0);
  return context;
}

torch::Tensor DebertaModel::Embed(const ModelInput& input) {
  torch::Tensor sum = word_embeddings_(input.ids);
  if (position_embeddings_) {
    const torch::Tensor positions = at::arange(input.ids.size(1), input.ids.options());
    sum = sum + position_embeddings_(positions);
  }
  if (token_type_embeddings_) sum = sum + token_type_embeddings_(input.type_ids);
  if (projection_) sum = projection_(sum);
  return Dropout(layer_norm_(sum), dropout_, is_training());
}

}  // namespace hpo::trainer
