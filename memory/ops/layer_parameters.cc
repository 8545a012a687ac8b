#include "memory/ops/layer_parameters.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/models/model_modules.h"

namespace hpo::memory {
namespace {

// "bert.encoder.layer.3."
std::string LayerName(const ModelShape& shape, int64_t index) {
  const ModelModules& modules = ModulesOf(*ModelFamilyOf(shape.family));
  return absl::StrCat(modules.prefix, ".", modules.layers, ".", index, ".");
}

}  // namespace

std::vector<EncoderLayerParameters> MakeEncoderLayers(const ModelParameters& parameters,
                                                      const ModelShape& shape) {
  const EncoderLayerModules& modules = EncoderLayerModulesOf(*ModelFamilyOf(shape.family));
  std::vector<EncoderLayerParameters> layers;
  for (int64_t i = 0; i < shape.num_layers; ++i) {
    const std::string name = LayerName(shape, i);
    layers.push_back({.query = parameters.Linear(name + modules.query),
                      .key = parameters.Linear(name + modules.key),
                      .value = parameters.Linear(name + modules.value),
                      .attention_dense = parameters.Linear(name + modules.attention_dense),
                      .attention_norm = parameters.Norm(name + modules.attention_norm),
                      .intermediate = parameters.Linear(name + modules.intermediate),
                      .output_dense = parameters.Linear(name + modules.output_dense),
                      .output_norm = parameters.Norm(name + modules.output_norm)});
  }
  return layers;
}

std::vector<DebertaLayerParameters> MakeDebertaLayers(const ModelParameters& parameters,
                                                      const ModelShape& shape) {
  std::vector<DebertaLayerParameters> layers;
  for (const EncoderLayerParameters& layer : MakeEncoderLayers(parameters, shape)) {
    const std::string name = LayerName(shape, std::ssize(layers)) + "attention.self.";
    const auto own_or = [&](const char* own, const TracedLinear& other) {
      return parameters.Has(absl::StrCat(name, own, ".weight")) ? parameters.Linear(name + own)
                                                                : other;
    };
    layers.push_back({layer, /*position_query=*/own_or("pos_query_proj", layer.query),
                      /*position_key=*/own_or("pos_key_proj", layer.key)});
  }
  return layers;
}

std::vector<Gpt2LayerParameters> MakeGpt2Layers(const ModelParameters& parameters,
                                                const ModelShape& shape) {
  std::vector<Gpt2LayerParameters> layers;
  for (int64_t i = 0; i < shape.num_layers; ++i) {
    const std::string name = LayerName(shape, i);
    layers.push_back({.attention_norm = parameters.Norm(name + "ln_1"),
                      .projections = parameters.Linear(name + "attn.c_attn"),
                      .attention_dense = parameters.Linear(name + "attn.c_proj"),
                      .forward_norm = parameters.Norm(name + "ln_2"),
                      .inner = parameters.Linear(name + "mlp.c_fc"),
                      .outer = parameters.Linear(name + "mlp.c_proj")});
  }
  return layers;
}

std::vector<LlamaLayerParameters> MakeLlamaLayers(const ModelParameters& parameters,
                                                  const ModelShape& shape) {
  std::vector<LlamaLayerParameters> layers;
  for (int64_t i = 0; i < shape.num_layers; ++i) {
    const std::string name = LayerName(shape, i);
    layers.push_back({.query = parameters.Linear(name + "self_attn.q_proj"),
                      .key = parameters.Linear(name + "self_attn.k_proj"),
                      .value = parameters.Linear(name + "self_attn.v_proj"),
                      .attention_dense = parameters.Linear(name + "self_attn.o_proj"),
                      .gate = parameters.Linear(name + "mlp.gate_proj"),
                      .up = parameters.Linear(name + "mlp.up_proj"),
                      .down = parameters.Linear(name + "mlp.down_proj"),
                      .attention_norm = parameters.Norm(name + "input_layernorm"),
                      .forward_norm = parameters.Norm(name + "post_attention_layernorm")});
  }
  return layers;
}

}  // namespace hpo::memory
