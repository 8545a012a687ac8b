// BERT and the families that have its layers: RoBERTa (XLM-RoBERTa, CamemBERT), ELECTRA,
// DistilBERT. They differ in their embeddings and in names.
// Source: Devlin et al. 2018 (arXiv:1810.04805), Liu et al. 2019 (1907.11692), Clark et al. 2020
// (2003.10555), Sanh et al. 2019 (1910.01108); names and numerical details, transformers 5.23.
#pragma once

#include <cstdint>

#include "worker/trainer/models/backbone.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {

class BertModel final : public Backbone {
 public:
  BertModel(const ModelShape& shape, torch::Device device);

  torch::Tensor WordEmbeddings() const override { return word_embeddings_->weight; }

 private:
  LayerContext ContextOf(const ModelInput& input) override;
  torch::Tensor Embed(const ModelInput& input) override;
  // Rows of the position table: [tokens], or of RoBERTa and of packed rows [batch, tokens].
  torch::Tensor PositionsOf(const ModelInput& input) const;

  Embedding word_embeddings_ = nullptr;
  Embedding position_embeddings_ = nullptr;
  Embedding token_type_embeddings_ = nullptr;  // null: none (DistilBERT)
  LayerNorm layer_norm_ = nullptr;
  Linear projection_ = nullptr;  // null: embeddings are as wide as the layers
  // RoBERTa numbers real tokens from here on, and gives padding this number; -1: all from 0.
  int64_t padding_position_ = -1;
  double dropout_;
};

}  // namespace hpo::trainer
