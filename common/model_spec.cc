#include "common/model_spec.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/json_reader.h"
#include "common/status.h"

namespace hpo {
namespace {

// Relative positions that DeBERTa v3 distinguishes in each direction (position_buckets).
constexpr int64_t kDebertaPositionBuckets = 256;

bool IsRoberta(const ModelShape& shape) {
  return shape.family == "roberta" || shape.family == "xlm-roberta";
}

bool IsDeberta(const ModelShape& shape) { return shape.family == "deberta-v2"; }

// RoBERTa numbers positions from pad_token_id + 1, so that many rows of its table are never used.
int64_t UnusedPositions(const ModelShape& shape) {
  return IsRoberta(shape) ? shape.pad_token_id + 1 : 0;
}

void CheckSize(JsonReader& reader, const char* key, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) {
    reader.Fail(key, absl::StrCat("expected an integer in [", low, ", ", high, "], got ", value));
  }
}

// Member names of one JSON form of a shape: ours, or config.json's.
struct ShapeKeys {
  const char* family;
  const char* num_layers;
  const char* num_heads;
  const char* max_positions;
  const char* hidden_dropout;
  const char* attention_dropout;
};

constexpr ShapeKeys kConfigKeys = {.family = "model_type",
                                   .num_layers = "num_hidden_layers",
                                   .num_heads = "num_attention_heads",
                                   .max_positions = "max_position_embeddings",
                                   .hidden_dropout = "hidden_dropout_prob",
                                   .attention_dropout = "attention_probs_dropout_prob"};

constexpr ShapeKeys kOwnKeys = {.family = "family",
                                .num_layers = "num_layers",
                                .num_heads = "num_heads",
                                .max_positions = "max_positions",
                                .hidden_dropout = "hidden_dropout",
                                .attention_dropout = "attention_dropout"};

// The bounds keep NumParameters and every byte count far from 2^63.
void CheckShape(JsonReader& reader, const ShapeKeys& keys, const ModelShape& shape) {
  CheckSize(reader, "vocab_size", shape.vocab_size, 1, 1 << 24);
  CheckSize(reader, "hidden_size", shape.hidden_size, 1, 1 << 17);
  CheckSize(reader, keys.num_layers, shape.num_layers, 1, 1 << 12);
  CheckSize(reader, keys.num_heads, shape.num_heads, 1, 1 << 12);
  CheckSize(reader, "intermediate_size", shape.intermediate_size, 1, 1 << 20);
  CheckSize(reader, keys.max_positions, shape.max_positions, 1, 1 << 24);
  CheckSize(reader, "type_vocab_size", shape.type_vocab_size, IsDeberta(shape) ? 0 : 1, 1 << 20);
  CheckSize(reader, "pad_token_id", shape.pad_token_id, 0, shape.vocab_size - 1);
  if (reader.status().ok() && shape.hidden_size % shape.num_heads != 0) {
    reader.Fail(keys.num_heads, absl::StrCat("expected a divisor of hidden_size ",
                                             shape.hidden_size, ", got ", shape.num_heads));
  }
  const std::pair<const char*, double> rates[] = {
      {keys.hidden_dropout, shape.hidden_dropout},
      {keys.attention_dropout, shape.attention_dropout}};
  for (const auto& [key, rate] : rates) {
    if (!(rate >= 0.0 && rate < 1.0)) {
      reader.Fail(key, absl::StrCat("expected a number in [0, 1), got ", rate));
    }
  }
  const std::pair<const char*, double> positives[] = {
      {"layer_norm_eps", shape.layer_norm_eps}, {"initializer_range", shape.initializer_range}};
  for (const auto& [key, value] : positives) {
    if (!(value > 0.0 && value < 1.0)) {
      reader.Fail(key, absl::StrCat("expected a number in (0, 1), got ", value));
    }
  }
}

ModelShape ReadShape(JsonReader& reader, const ShapeKeys& keys) {
  ModelShape shape;
  reader.Required(keys.family, shape.family);
  reader.Required("vocab_size", shape.vocab_size);
  reader.Required("hidden_size", shape.hidden_size);
  reader.Required(keys.num_layers, shape.num_layers);
  reader.Required(keys.num_heads, shape.num_heads);
  reader.Required("intermediate_size", shape.intermediate_size);
  reader.Required(keys.max_positions, shape.max_positions);
  reader.Required("type_vocab_size", shape.type_vocab_size);
  reader.Optional("layer_norm_eps", shape.layer_norm_eps);
  reader.Optional(keys.hidden_dropout, shape.hidden_dropout);
  reader.Optional(keys.attention_dropout, shape.attention_dropout);
  reader.Optional("initializer_range", shape.initializer_range);
  reader.Optional("pad_token_id", shape.pad_token_id);
  reader.Optional("hidden_act", shape.hidden_act);
  return shape;
}

absl::StatusOr<ModelShape> ShapeFromConfig(absl::string_view text) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text));
  JsonReader reader(json, "");
  ModelShape shape = ReadShape(reader, kConfigKeys);
  std::string positions = "absolute";
  if (shape.family == "bert") reader.Optional("position_embedding_type", positions);
  if (positions != "absolute") {
    reader.Fail("position_embedding_type", absl::StrCat("expected absolute, got ", positions));
  }
  shape.max_positions -= UnusedPositions(shape);
  CheckShape(reader, kConfigKeys, shape);
  HPO_RETURN_IF_ERROR(reader.status());
  return shape;
}

}  // namespace

absl::StatusOr<ModelShape> ParseModelConfig(absl::string_view json, absl::string_view origin) {
  absl::StatusOr<ModelShape> shape = ShapeFromConfig(json);
  if (!shape.ok()) return Annotate(shape.status(), origin);
  return shape;
}

nlohmann::json ModelShapeToJson(const ModelShape& shape) {
  return {{"family", shape.family},
          {"vocab_size", shape.vocab_size},
          {"hidden_size", shape.hidden_size},
          {"num_layers", shape.num_layers},
          {"num_heads", shape.num_heads},
          {"intermediate_size", shape.intermediate_size},
          {"max_positions", shape.max_positions},
          {"type_vocab_size", shape.type_vocab_size},
          {"layer_norm_eps", shape.layer_norm_eps},
          {"hidden_dropout", shape.hidden_dropout},
          {"attention_dropout", shape.attention_dropout},
          {"initializer_range", shape.initializer_range},
          {"pad_token_id", shape.pad_token_id},
          {"hidden_act", shape.hidden_act}};
}

absl::StatusOr<ModelShape> ModelShapeFromJson(const nlohmann::json& json) {
  JsonReader reader(json, "");
  ModelShape shape = ReadShape(reader, kOwnKeys);
  CheckShape(reader, kOwnKeys, shape);
  HPO_RETURN_IF_ERROR(reader.status());
  return shape;
}

int64_t NumParameters(const ModelShape& shape) {
  const int64_t hidden = shape.hidden_size;
  const int64_t layer_norm = 2 * hidden;
  const int64_t square = hidden * hidden + hidden;  // weight and bias
  const int64_t feed_forward =
      2 * hidden * shape.intermediate_size + shape.intermediate_size + hidden;
  const int64_t layer = 4 * square + feed_forward + 2 * layer_norm;
  const int64_t words_and_types = (shape.vocab_size + shape.type_vocab_size) * hidden + layer_norm;
  if (IsDeberta(shape)) {
    // Shared table of relative positions with its own normalisation; no absolute ones, no pooler.
    const int64_t relative = 2 * kDebertaPositionBuckets * hidden + layer_norm;
    return words_and_types + relative + shape.num_layers * layer;
  }
  const int64_t positions = (shape.max_positions + UnusedPositions(shape)) * hidden;
  const int64_t pooler = square;
  return words_and_types + positions + shape.num_layers * layer + pooler;
}

bool TrainerSupports(const ModelShape& shape) { return shape.family == "bert"; }

}  // namespace hpo
