#include "common/models/model_spec.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/models/activation.h"
#include "common/models/model_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

struct KnownType {
  const char* model_type;
  ModelFamily family;
};

constexpr KnownType kKnownTypes[] = {
    {"bert", ModelFamily::kBert},           {"roberta", ModelFamily::kRoberta},
    {"xlm-roberta", ModelFamily::kRoberta}, {"camembert", ModelFamily::kRoberta},
    {"deberta-v2", ModelFamily::kDeberta},  {"distilbert", ModelFamily::kDistilBert},
    {"electra", ModelFamily::kElectra},     {"gpt2", ModelFamily::kGpt2},
    {"llama", ModelFamily::kLlama},         {"qwen2", ModelFamily::kQwen2},
};

const KnownType* FindModelType(absl::string_view model_type) {
  for (const KnownType& known : kKnownTypes) {
    if (model_type == known.model_type) return &known;
  }
  return nullptr;
}

bool HasTokenTypes(ModelFamily family) {
  return family == ModelFamily::kBert || family == ModelFamily::kRoberta ||
         family == ModelFamily::kElectra;
}

// The first thing that is wrong with a shape.
class ShapeCheck {
 public:
  void Size(const char* key, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return;
    Fail(key, absl::StrCat("expected an integer in [", low, ", ", high, "], got ", value));
  }

  void Rate(const char* key, double value) {
    if (value >= 0.0 && value < 1.0) return;
    Fail(key, absl::StrCat("expected a number in [0, 1), got ", value));
  }

  void AboveZero(const char* key, double value) {
    if (value > 0.0 && value < 1e18) return;
    Fail(key, absl::StrCat("expected a positive number, got ", value));
  }

  void Positive(const char* key, double value) {
    if (value > 0.0 && value < 1.0) return;
    Fail(key, absl::StrCat("expected a number in (0, 1), got ", value));
  }

  // `value` and `whole` are in range already, or nothing is said.
  void Divides(const char* key, int64_t value, const char* whole_key, int64_t whole) {
    if (!status_.ok() || whole % value == 0) return;
    Fail(key, absl::StrCat("expected a divisor of ", whole_key, " ", whole, ", got ", value));
  }

  const absl::Status& status() const { return status_; }

 private:
  void Fail(const char* key, const std::string& message) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(absl::StrCat(key == nullptr ? "" : key, ": ", message));
  }

  absl::Status status_;
};

}  // namespace

std::optional<ModelFamily> ModelFamilyOf(absl::string_view model_type) {
  const KnownType* const known = FindModelType(model_type);
  if (known == nullptr) return std::nullopt;
  return known->family;
}

bool IsDecoder(ModelFamily family) {
  return family == ModelFamily::kGpt2 || family == ModelFamily::kLlama ||
         family == ModelFamily::kQwen2;
}

int64_t UnusedPositions(const ModelShape& shape) {
  return ModelFamilyOf(shape.family) == ModelFamily::kRoberta ? shape.pad_token_id + 1 : 0;
}

absl::Status CheckKnownFamily(const ModelShape& shape) {
  if (FindModelType(shape.family) != nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  for (const KnownType& known : kKnownTypes) names.push_back(known.model_type);
  return absl::UnimplementedError(absl::StrCat(
      "model_type: expected one of ", absl::StrJoin(names, ", "), "; got '", shape.family, "'"));
}

absl::Status CheckShape(const ModelShape& shape, const ShapeKeys& keys) {
  const std::optional<ModelFamily> family = ModelFamilyOf(shape.family);
  if (!family.has_value()) return absl::OkStatus();
  ShapeCheck check;
  check.Size("vocab_size", shape.vocab_size, 1, 1 << 24);
  check.Size(keys.hidden_size, shape.hidden_size, 1, 1 << 17);
  check.Size(keys.num_layers, shape.num_layers, 1, 1 << 12);
  check.Size(keys.num_heads, shape.num_heads, 1, 1 << 12);
  check.Size(keys.intermediate_size, shape.intermediate_size, 1, 1 << 20);
  check.Size(keys.max_positions, shape.max_positions, 1, 1 << 24);
  check.Size(keys.type_vocab_size, shape.type_vocab_size, HasTokenTypes(*family) ? 1 : 0, 1 << 20);
  check.Size(keys.pad_token_id, shape.pad_token_id, 0, shape.vocab_size - 1);
  check.Size("num_key_value_heads", shape.num_key_value_heads, 0, shape.num_heads);
  check.Size(keys.head_size, shape.head_size, 0, 1 << 14);
  check.Size("embedding_size", shape.embedding_size, 0, 1 << 17);
  check.Size("conv_kernel_size", shape.conv_kernel_size, 0, 1 << 8);
  check.Size("position_buckets or max_relative_positions", shape.relative.span, 0, 1 << 20);
  if (shape.head_size == 0) {
    check.Divides(keys.num_heads, shape.num_heads, keys.hidden_size, shape.hidden_size);
  }
  check.Divides("num_key_value_heads", shape.KeyValueHeads(), keys.num_heads, shape.num_heads);
  check.Rate(keys.hidden_dropout, shape.hidden_dropout);
  check.Rate(keys.attention_dropout, shape.attention_dropout);
  check.Rate(keys.embedding_dropout, shape.embedding_dropout);
  check.AboveZero("rope_theta", shape.rope_theta);
  check.AboveZero("rope_scaling factor", shape.rope.factor);
  check.Positive(keys.layer_norm_eps, shape.layer_norm_eps);
  check.Positive("initializer_range", shape.initializer_range);
  return check.status();
}

absl::StatusOr<ModelShape> ModelShapeFromJson(const nlohmann::json& json) {
  JsonReader reader(json, "");
  ModelShape shape;
  reader.Required("family", shape.family);
  HPO_RETURN_IF_ERROR(reader.status());
  if (!ModelFamilyOf(shape.family).has_value()) return shape;
  ReadFields(reader, shape);
  HPO_RETURN_IF_ERROR(reader.status());
  HPO_RETURN_IF_ERROR(CheckShape(shape, ShapeKeys{}));
  return shape;
}

bool TrainerSupports(const ModelShape& shape) {
  return FindModelType(shape.family) != nullptr && ActivationOf(shape.hidden_act).has_value() &&
         (shape.conv_kernel_size == 0 || ActivationOf(shape.conv_act).has_value());
}

absl::Status CheckTrainable(const ModelShape& shape) {
  if (TrainerSupports(shape)) return absl::OkStatus();
  HPO_RETURN_IF_ERROR(CheckKnownFamily(shape));
  const bool hidden = !ActivationOf(shape.hidden_act).has_value();
  return absl::UnimplementedError(absl::StrCat(
      hidden ? "hidden_act" : "conv_act", ": expected gelu, gelu_new, relu, silu or tanh, got '",
      hidden ? shape.hidden_act : shape.conv_act, "'"));
}

}  // namespace hpo
