#include "common/models/model_modules.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo {
namespace {

constexpr ClassifierModules kPooledFirstToken = {.last_token = false,
                                                 .dense = "bert.pooler.dense",
                                                 .dropout_before_dense = false,
                                                 .activation = Activation::kTanh,
                                                 .output = "classifier",
                                                 .output_bias = true};

constexpr ClassifierModules WithDense(const char* dense, bool dropout_before_dense,
                                      Activation activation, const char* output) {
  ClassifierModules modules = kPooledFirstToken;
  modules.dense = dense;
  modules.dropout_before_dense = dropout_before_dense;
  modules.activation = activation;
  modules.output = output;
  return modules;
}

constexpr ClassifierModules kScore = {.last_token = true,
                                      .dense = nullptr,
                                      .dropout_before_dense = false,
                                      .activation = Activation::kTanh,
                                      .output = "score",
                                      .output_bias = false};

constexpr ModelModules kBert = {"bert", "encoder.layer", kPooledFirstToken};
constexpr ModelModules kRoberta = {
    "roberta", "encoder.layer",
    WithDense("classifier.dense", true, Activation::kTanh, "classifier.out_proj")};
constexpr ModelModules kElectra = {
    "electra", "encoder.layer",
    WithDense("classifier.dense", true, Activation::kGelu, "classifier.out_proj")};
constexpr ModelModules kDeberta = {
    "deberta", "encoder.layer", WithDense("pooler.dense", false, Activation::kGelu, "classifier")};
constexpr ModelModules kDistilBert = {
    "distilbert", "transformer.layer",
    WithDense("pre_classifier", false, Activation::kRelu, "classifier")};
constexpr ModelModules kGpt2 = {"transformer", "h", kScore};
constexpr ModelModules kLlama = {"model", "layers", kScore};

constexpr EncoderLayerModules kBertLayer = {.query = "attention.self.query",
                                            .key = "attention.self.key",
                                            .value = "attention.self.value",
                                            .attention_dense = "attention.output.dense",
                                            .attention_norm = "attention.output.LayerNorm",
                                            .intermediate = "intermediate.dense",
                                            .output_dense = "output.dense",
                                            .output_norm = "output.LayerNorm",
                                            .attention_dropout = true};

constexpr EncoderLayerModules DebertaLayer() {
  EncoderLayerModules modules = kBertLayer;
  modules.query = "attention.self.query_proj";
  modules.key = "attention.self.key_proj";
  modules.value = "attention.self.value_proj";
  return modules;
}
constexpr EncoderLayerModules kDebertaLayer = DebertaLayer();

constexpr EncoderLayerModules kDistilBertLayer = {.query = "attention.q_lin",
                                                  .key = "attention.k_lin",
                                                  .value = "attention.v_lin",
                                                  .attention_dense = "attention.out_lin",
                                                  .attention_norm = "sa_layer_norm",
                                                  .intermediate = "ffn.lin1",
                                                  .output_dense = "ffn.lin2",
                                                  .output_norm = "output_layer_norm",
                                                  .attention_dropout = false};

// model_type, and what the names of its classes begin with.
constexpr std::pair<absl::string_view, absl::string_view> kClasses[] = {
    {"bert", "Bert"},
    {"roberta", "Roberta"},
    {"xlm-roberta", "XLMRoberta"},
    {"camembert", "Camembert"},
    {"deberta-v2", "DebertaV2"},
    {"distilbert", "DistilBert"},
    {"electra", "Electra"},
    {"gpt2", "GPT2"},
    {"llama", "Llama"},
    {"qwen2", "Qwen2"},
};

}  // namespace

const ModelModules& ModulesOf(ModelFamily family) {
  switch (family) {
    case ModelFamily::kBert:
      break;
    case ModelFamily::kRoberta:
      return kRoberta;
    case ModelFamily::kDeberta:
      return kDeberta;
    case ModelFamily::kDistilBert:
      return kDistilBert;
    case ModelFamily::kElectra:
      return kElectra;
    case ModelFamily::kGpt2:
      return kGpt2;
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      return kLlama;
  }
  return kBert;
}

const EncoderLayerModules& EncoderLayerModulesOf(ModelFamily family) {
  HPO_CHECK(!IsDecoder(family));
  if (family == ModelFamily::kDeberta) return kDebertaLayer;
  return family == ModelFamily::kDistilBert ? kDistilBertLayer : kBertLayer;
}

double HeadDropoutOf(const ModelShape& shape) {
  const std::optional<ModelFamily> family = ModelFamilyOf(shape.family);
  return family.has_value() && IsDecoder(*family) ? 0.0 : shape.hidden_dropout;
}

std::string ArchitectureName(absl::string_view model_type, absl::string_view task) {
  if (model_type == "gpt2" && task == "ForCausalLM") return "GPT2LMHeadModel";
  for (const auto& [type, name] : kClasses) {
    if (type == model_type) return absl::StrCat(name, task);
  }
  HPO_CHECK(false);
  return "";
}

std::string ModelTypeOf(absl::string_view architecture) {
  std::pair<absl::string_view, absl::string_view> found;
  for (const auto& known : kClasses) {
    const bool longer = known.second.size() > found.second.size();
    if (longer && absl::StartsWith(architecture, known.second)) found = known;
  }
  return std::string(found.first);
}

}  // namespace hpo
