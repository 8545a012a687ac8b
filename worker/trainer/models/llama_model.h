// Llama and Qwen2: pre-norm layers with RMSNorm, rotary positions, grouped queries, SwiGLU.
// Source: Touvron et al. 2023 (arXiv:2302.13971), Yang et al. 2024 (2407.10671); rotary positions,
// Su et al. 2021 (2104.09864); names and numerical details, transformers 5.23
// (modeling_llama.py, modeling_qwen2.py, modeling_rope_utils.py).
#pragma once

#include <vector>

#include "worker/trainer/models/backbone.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {

class LlamaModel final : public Backbone {
 public:
  LlamaModel(const ModelShape& shape, torch::Device device);

  torch::Tensor WordEmbeddings() const override { return word_embeddings_->weight; }

 private:
  LayerContext ContextOf(const ModelInput& input) override;
  torch::Tensor Embed(const ModelInput& input) override { return word_embeddings_(input.ids); }
  torch::Tensor Finish(const torch::Tensor& hidden) override { return last_norm_(hidden); }

  Embedding word_embeddings_ = nullptr;
  RmsNorm last_norm_ = nullptr;
  torch::Tensor frequencies_;  // RotaryFrequencies
};

// Radians a position for each pair of a head's dimensions, half of HeadSize() of them.
std::vector<float> RotaryFrequencies(const ModelShape& shape);

}  // namespace hpo::trainer
