// DeBERTa v2 and v3: attention to contents and to relative positions.
// Source: He et al. 2021 (arXiv:2006.03654, 2111.09543); names and numerical details,
// transformers 5.23 (modeling_deberta_v2.py).
#pragma once

#include <cstdint>
#include <vector>

#include "worker/trainer/models/backbone.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {

class DebertaModel final : public Backbone {
 public:
  DebertaModel(const ModelShape& shape, torch::Device device);

  torch::Tensor WordEmbeddings() const override { return word_embeddings_->weight; }

 private:
  void MakeEmbeddings(const ModelShape& shape, torch::Device device);
  LayerContext ContextOf(const ModelInput& input) override;
  torch::Tensor Embed(const ModelInput& input) override;

  Embedding word_embeddings_ = nullptr;
  Embedding position_embeddings_ = nullptr;    // null: none
  Embedding token_type_embeddings_ = nullptr;  // null: none
  Linear projection_ = nullptr;                // null: embeddings are as wide as the layers
  LayerNorm layer_norm_ = nullptr;
  Embedding relative_embeddings_ = nullptr;  // null: no relative attention
  LayerNorm relative_norm_ = nullptr;        // null: none
  // Row of the relative table for each distance, from max_positions - 1 down to 1 - max_positions:
  // on the host, and int64 on the device.
  std::vector<int64_t> rows_;
  torch::Tensor device_rows_;
  double dropout_;
};

}  // namespace hpo::trainer
