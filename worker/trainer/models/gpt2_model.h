// GPT-2: pre-norm layers, causal attention, positions by a table.
// Source: Radford et al. 2019; names and numerical details, transformers 5.23 (modeling_gpt2.py).
#pragma once

#include "worker/trainer/models/backbone.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {

class Gpt2Model final : public Backbone {
 public:
  Gpt2Model(const ModelShape& shape, torch::Device device);

  torch::Tensor WordEmbeddings() const override { return word_embeddings_->weight; }

 private:
  LayerContext ContextOf(const ModelInput& input) override;
  torch::Tensor Embed(const ModelInput& input) override;
  torch::Tensor Finish(const torch::Tensor& hidden) override { return last_norm_(hidden); }

  Embedding word_embeddings_ = nullptr;
  Embedding position_embeddings_ = nullptr;
  LayerNorm last_norm_ = nullptr;
  double dropout_;
};

}  // namespace hpo::trainer
