// The parameters of one layer of each kind of model, by the names in Hugging Face's files.
#pragma once

#include <vector>

#include "common/models/model_spec.h"
#include "memory/ops/model_ops.h"

namespace hpo::memory {

// A post-norm layer: BERT's and its descendants', DeBERTa's among them (EncoderLayerModules).
struct EncoderLayerParameters {
  TracedLinear query, key, value, attention_dense;
  TracedNorm attention_norm;
  TracedLinear intermediate, output_dense;
  TracedNorm output_norm;
};

// Relative positions are projected too: as tokens are, where the layer has no projections for them.
struct DebertaLayerParameters : EncoderLayerParameters {
  TracedLinear position_query, position_key;
};

struct Gpt2LayerParameters {
  TracedNorm attention_norm;
  TracedLinear projections, attention_dense;  // query, key and value in one
  TracedNorm forward_norm;
  TracedLinear inner, outer;
};

// Llama's and Qwen2's.
struct LlamaLayerParameters {
  TracedLinear query, key, value, attention_dense;
  TracedLinear gate, up, down;
  TracedNorm attention_norm, forward_norm;
};

// Every layer's, in order. `parameters` are those of a model of `shape`, of the kind's family.
std::vector<EncoderLayerParameters> MakeEncoderLayers(const ModelParameters& parameters,
                                                      const ModelShape& shape);
std::vector<DebertaLayerParameters> MakeDebertaLayers(const ModelParameters& parameters,
                                                      const ModelShape& shape);
std::vector<Gpt2LayerParameters> MakeGpt2Layers(const ModelParameters& parameters,
                                                const ModelShape& shape);
std::vector<LlamaLayerParameters> MakeLlamaLayers(const ModelParameters& parameters,
                                                  const ModelShape& shape);

}  // namespace hpo::memory
