#include "common/models/model_config.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/models/model_modules.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

constexpr ShapeKeys kBertKeys = {.family = "model_type",
                                 .num_layers = "num_hidden_layers",
                                 .num_heads = "num_attention_heads",
                                 .max_positions = "max_position_embeddings",
                                 .hidden_dropout = "hidden_dropout_prob",
                                 .attention_dropout = "attention_probs_dropout_prob"};

constexpr ShapeKeys kDistilBertKeys = {.family = "model_type",
                                       .hidden_size = "dim",
                                       .num_layers = "n_layers",
                                       .num_heads = "n_heads",
                                       .intermediate_size = "hidden_dim",
                                       .max_positions = "max_position_embeddings",
                                       .type_vocab_size = nullptr,
                                       .layer_norm_eps = nullptr,
                                       .hidden_dropout = "dropout",
                                       .attention_dropout = "attention_dropout",
                                       .hidden_act = "activation"};

constexpr ShapeKeys kGpt2Keys = {.family = "model_type",
                                 .hidden_size = "n_embd",
                                 .num_layers = "n_layer",
                                 .num_heads = "n_head",
                                 .intermediate_size = "n_inner",
                                 .max_positions = "n_positions",
                                 .type_vocab_size = nullptr,
                                 .layer_norm_eps = "layer_norm_epsilon",
                                 .hidden_dropout = "resid_pdrop",
                                 .attention_dropout = "attn_pdrop",
                                 .embedding_dropout = "embd_pdrop",
                                 .pad_token_id = nullptr,
                                 .hidden_act = "activation_function"};

constexpr ShapeKeys kLlamaKeys = {.family = "model_type",
                                  .num_layers = "num_hidden_layers",
                                  .num_heads = "num_attention_heads",
                                  .max_positions = "max_position_embeddings",
                                  .type_vocab_size = nullptr,
                                  .layer_norm_eps = "rms_norm_eps",
                                  .hidden_dropout = nullptr,
                                  .attention_dropout = "attention_dropout",
                                  .pad_token_id = nullptr,
                                  .head_size = "head_dim"};

const ShapeKeys& KeysOf(ModelFamily family) {
  switch (family) {
    case ModelFamily::kDistilBert:
      return kDistilBertKeys;
    case ModelFamily::kGpt2:
      return kGpt2Keys;
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      return kLlamaKeys;
    case ModelFamily::kBert:
    case ModelFamily::kRoberta:
    case ModelFamily::kDeberta:
    case ModelFamily::kElectra:
      break;
  }
  return kBertKeys;
}

// Values of the library's configuration classes that differ from ModelShape's.
void SetDefaults(ModelFamily family, ModelShape& shape) {
  switch (family) {
    case ModelFamily::kGpt2:
      shape.layer_norm_eps = 1e-5;
      shape.embedding_dropout = 0.1;
      shape.hidden_act = "gelu_new";
      shape.tied_head = true;
      break;
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      shape.layer_norm_eps = 1e-6;
      shape.hidden_dropout = 0.0;
      shape.attention_dropout = 0.0;
      shape.hidden_act = "silu";
      break;
    case ModelFamily::kRoberta:
      shape.pad_token_id = 1;
      break;
    case ModelFamily::kDeberta:
      shape.layer_norm_eps = 1e-7;
      break;
    case ModelFamily::kBert:
    case ModelFamily::kDistilBert:
    case ModelFamily::kElectra:
      break;
  }
}

template <typename T>
void OptionalIfNamed(JsonReader& reader, const char* key, T& out) {
  if (key != nullptr) reader.Optional(key, out);
}

void ReadCommon(JsonReader& reader, const ShapeKeys& keys, ModelShape& shape) {
  reader.Required("vocab_size", shape.vocab_size);
  reader.Required(keys.hidden_size, shape.hidden_size);
  reader.Required(keys.num_layers, shape.num_layers);
  reader.Required(keys.num_heads, shape.num_heads);
  reader.Required(keys.max_positions, shape.max_positions);
  if (keys.type_vocab_size != nullptr) {
    reader.Required(keys.type_vocab_size, shape.type_vocab_size);
  }
  OptionalIfNamed(reader, keys.layer_norm_eps, shape.layer_norm_eps);
  OptionalIfNamed(reader, keys.hidden_dropout, shape.hidden_dropout);
  OptionalIfNamed(reader, keys.attention_dropout, shape.attention_dropout);
  OptionalIfNamed(reader, keys.pad_token_id, shape.pad_token_id);
  reader.Optional("initializer_range", shape.initializer_range);
  reader.Optional(keys.hidden_act, shape.hidden_act);
  reader.Optional("torch_dtype", shape.stored_type);
  reader.Optional("dtype", shape.stored_type);
}

// Structures that no family here has.
void RefuseWhatIsNotCounted(JsonReader& reader, ModelFamily family) {
  bool cross_attention = false;
  reader.Optional("add_cross_attention", cross_attention);
  if (cross_attention) reader.Fail("add_cross_attention", "expected false, got true");
  if (family == ModelFamily::kDeberta || IsDecoder(family)) return;
  std::string positions = "absolute";
  reader.Optional("position_embedding_type", positions);
  if (positions != "absolute") {
    reader.Fail("position_embedding_type", absl::StrCat("expected absolute, got ", positions));
  }
}

// pos_att_type: "p2c|c2p" or ["p2c", "c2p"].
std::vector<std::string> ReadPositionTerms(JsonReader& reader, const nlohmann::json& json) {
  std::vector<std::string> terms;
  const auto found = json.find("pos_att_type");
  if (found != json.end() && found->is_string()) {
    for (absl::string_view term : absl::StrSplit(found->get<std::string>(), '|')) {
      terms.push_back(absl::AsciiStrToLower(absl::StripAsciiWhitespace(term)));
    }
  } else {
    reader.Optional("pos_att_type", terms);
  }
  return terms;
}

void ReadDeberta(JsonReader& reader, const nlohmann::json& json, ModelShape& shape) {
  bool relative = false;
  int64_t buckets = -1;
  int64_t farthest = -1;
  bool biased_input = true;
  std::string norm = "none";
  int64_t conv_groups = 1;
  reader.Optional("relative_attention", relative);
  reader.Optional("position_buckets", buckets);
  reader.Optional("max_relative_positions", farthest);
  reader.Optional("share_att_key", shape.relative.share_projections);
  reader.Optional("position_biased_input", biased_input);
  reader.Optional("norm_rel_ebd", norm);
  reader.Optional("conv_kernel_size", shape.conv_kernel_size);
  reader.Optional("conv_act", shape.conv_act);
  reader.Optional("conv_groups", conv_groups);
  reader.Optional("embedding_size", shape.embedding_size);
  if (conv_groups != 1) reader.Fail("conv_groups", absl::StrCat("expected 1, got ", conv_groups));
  for (const std::string& term : ReadPositionTerms(reader, json)) {
    if (term == "c2p") shape.relative.content_to_position = true;
    if (term == "p2c") shape.relative.position_to_content = true;
  }
  if (relative) {
    shape.relative.bucketed = buckets > 0;
    shape.relative.span = buckets > 0 ? buckets : farthest;
    if (buckets > 0 && farthest > 0 && farthest != shape.max_positions) {
      shape.relative.farthest = farthest;
    }
    if (shape.relative.span < 1) shape.relative.span = shape.max_positions;
  } else {
    shape.relative = {};
  }
  for (absl::string_view part : absl::StrSplit(norm, '|')) {
    if (absl::AsciiStrToLower(absl::StripAsciiWhitespace(part)) == "layer_norm") {
      shape.relative_norm = true;
    }
  }
  shape.no_positions = !biased_input;
}

absl::StatusOr<RopeScaling> RopeFromConfig(const nlohmann::json& json) {
  JsonReader reader(json, "");
  RopeScaling rope;
  std::string type = "default";
  reader.Optional("type", type);  // the old name
  reader.Optional("rope_type", type);
  if (type == "linear" || type == "llama3") reader.Required("factor", rope.factor);
  if (type == "llama3") {
    reader.Required("low_freq_factor", rope.low_frequency);
    reader.Required("high_freq_factor", rope.high_frequency);
    reader.Required("original_max_position_embeddings", rope.original_positions);
  } else if (type != "default" && type != "linear") {
    reader.Fail("rope_type", absl::StrCat("expected default, linear or llama3, got ", type));
  }
  HPO_RETURN_IF_ERROR(reader.status());
  return rope;
}

absl::StatusOr<double> ThetaFromConfig(const nlohmann::json& json) {
  JsonReader reader(json, "");
  double theta = ModelShape().rope_theta;
  reader.Optional("rope_theta", theta);
  HPO_RETURN_IF_ERROR(reader.status());
  return theta;
}

void ReadLlama(JsonReader& reader, ModelShape& shape) {
  reader.Optional("num_key_value_heads", shape.num_key_value_heads);
  if (reader.Has("num_key_value_heads") && shape.num_key_value_heads == 0) {
    reader.Fail("num_key_value_heads", "expected an integer of at least 1, got 0");
  }
  reader.Optional("head_dim", shape.head_size);
  reader.Optional("rope_theta", shape.rope_theta);
  reader.OptionalWith("rope_scaling", shape.rope, RopeFromConfig);
  // Transformers 5 keeps all of it in one place.
  reader.OptionalWith("rope_parameters", shape.rope, RopeFromConfig);
  reader.OptionalWith("rope_parameters", shape.rope_theta, ThetaFromConfig);
  bool sliding_window = false;
  reader.Optional("use_sliding_window", sliding_window);
  if (sliding_window) reader.Fail("use_sliding_window", "expected false, got true");
}

// GPT-2's variants of attention.
void RefuseOtherScales(JsonReader& reader) {
  bool scales = true;
  bool scales_by_layer = false;
  reader.Optional("scale_attn_weights", scales);
  reader.Optional("scale_attn_by_inverse_layer_idx", scales_by_layer);
  if (!scales) reader.Fail("scale_attn_weights", "expected true, got false");
  if (scales_by_layer) reader.Fail("scale_attn_by_inverse_layer_idx", "expected false, got true");
}

void ReadFamily(JsonReader& reader, ModelFamily family, const nlohmann::json& json,
                ModelShape& shape) {
  const ShapeKeys& keys = KeysOf(family);
  if (family == ModelFamily::kGpt2) {
    shape.intermediate_size = 4 * std::clamp<int64_t>(shape.hidden_size, 0, 1 << 20);
    reader.Optional(keys.intermediate_size, shape.intermediate_size);
    reader.Optional(keys.embedding_dropout, shape.embedding_dropout);
    RefuseOtherScales(reader);
  } else {
    reader.Required(keys.intermediate_size, shape.intermediate_size);
  }
  if (family == ModelFamily::kLlama || family == ModelFamily::kQwen2) {
    ReadLlama(reader, shape);
  }
  if (family == ModelFamily::kLlama) {
    reader.Optional("attention_bias", shape.attention_bias);
    reader.Optional("mlp_bias", shape.mlp_bias);
  }
  if (family == ModelFamily::kElectra) reader.Required("embedding_size", shape.embedding_size);
  if (family == ModelFamily::kDeberta) ReadDeberta(reader, json, shape);
  if (IsDecoder(family)) reader.Optional("tie_word_embeddings", shape.tied_head);
}

// What is as usual is left 0, so that a shape has one form.
void LeaveOutTheUsual(ModelShape& shape) {
  if (shape.num_key_value_heads == shape.num_heads) shape.num_key_value_heads = 0;
  if (shape.embedding_size == shape.hidden_size) shape.embedding_size = 0;
  if (shape.head_size * shape.num_heads == shape.hidden_size) shape.head_size = 0;
}

// Names the family by the architecture that the file says ("BertForMaskedLM"), where it is known.
absl::Status MissingModelType(const nlohmann::json& json) {
  const auto architectures = json.find("architectures");
  const bool said = architectures != json.end() && architectures->is_array() &&
                    !architectures->empty() && architectures->front().is_string();
  const std::string architecture = said ? architectures->front().get<std::string>() : "";
  const std::string family = ModelTypeOf(architecture);
  const std::string cure = family.empty()
                               ? R"(add the one of its family, such as "model_type": "bert")"
                               : absl::StrCat("its architecture is ", architecture,
                                              R"(: add "model_type": ")", family, R"(")");
  return absl::InvalidArgumentError(
      absl::StrCat("model_type: expected the name of the model's family, got none; ", cure));
}

absl::StatusOr<ModelShape> ShapeFromConfig(absl::string_view text) {
  const absl::StatusOr<nlohmann::json> parsed = ParseJson(text);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(parsed.status().message(), "; correct the file, or download it again"));
  }
  const nlohmann::json& json = *parsed;
  JsonReader reader(json, "");
  ModelShape shape;
  if (json.is_object() && !reader.Has("model_type")) return MissingModelType(json);
  reader.Required("model_type", shape.family);
  HPO_RETURN_IF_ERROR(reader.status());
  const std::optional<ModelFamily> family = ModelFamilyOf(shape.family);
  if (!family.has_value()) return shape;
  SetDefaults(*family, shape);
  ReadCommon(reader, KeysOf(*family), shape);
  ReadFamily(reader, *family, json, shape);
  RefuseWhatIsNotCounted(reader, *family);
  HPO_RETURN_IF_ERROR(reader.status());
  HPO_RETURN_IF_ERROR(CheckShape(shape, KeysOf(*family)));
  LeaveOutTheUsual(shape);
  shape.max_positions -= UnusedPositions(shape);
  HPO_RETURN_IF_ERROR(CheckShape(shape, KeysOf(*family)));
  return shape;
}

}  // namespace

absl::StatusOr<ModelShape> ParseModelConfig(absl::string_view json, absl::string_view origin) {
  absl::StatusOr<ModelShape> shape = ShapeFromConfig(json);
  if (!shape.ok()) return Annotate(shape.status(), origin);
  return shape;
}

}  // namespace hpo
