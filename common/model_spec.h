// What matters of a model to memory: its shape, read from a Hugging Face config.json.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace hpo {

// Sizes are element counts. Encoder models of the BERT shape; more families are added by later
// issues.
struct ModelShape {
  std::string family;  // config.json's model_type: "bert", "roberta", "deberta-v2", ...
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t intermediate_size = 0;
  // Longest input the model takes, special tokens included: config.json's max_position_embeddings,
  // for roberta and xlm-roberta less the pad_token_id + 1 rows that are never used.
  int64_t max_positions = 0;
  int64_t type_vocab_size = 0;
  double layer_norm_eps = 1e-12;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double initializer_range = 0.02;
  int64_t pad_token_id = 0;
  std::string hidden_act = "gelu";
  bool operator==(const ModelShape&) const = default;
};

// Reads config.json's text.
//   InvalidArgument  not JSON, a key missing or out of range, heads that do not divide the hidden
//                    size, a bert without absolute positions; names `origin`, the key and the value
absl::StatusOr<ModelShape> ParseModelConfig(absl::string_view json, absl::string_view origin);

// FromJson accepts what ToJson wrote, and refuses what ParseModelConfig would.
nlohmann::json ModelShapeToJson(const ModelShape& shape);
absl::StatusOr<ModelShape> ModelShapeFromJson(const nlohmann::json& json);

// Encoder and pooler parameters, without a task head. Exact for bert (bert-base-uncased is
// 109,482,240), roberta, xlm-roberta and DeBERTa v3 (which has no pooler); other families are
// counted as bert.
int64_t NumParameters(const ModelShape& shape);

// Whether NumParameters is exact for this family and our trainer can run it.
bool TrainerSupports(const ModelShape& shape);

constexpr int64_t kHeavyParameters = 250'000'000;

}  // namespace hpo
