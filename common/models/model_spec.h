// What matters of a model to memory: its shape. Read from config.json by
// common/models/model_config, known by name in common/study/model_catalog, counted by
// common/models/model_parameters.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// Structures of the Hugging Face library that are told apart.
enum class ModelFamily { kBert, kRoberta, kDeberta, kDistilBert, kElectra, kGpt2, kLlama, kQwen2 };

// The family that a config.json's model_type means; "xlm-roberta" and "camembert" are RoBERTas.
// nullopt: none of the known.
std::optional<ModelFamily> ModelFamilyOf(absl::string_view model_type);

// GPT-2, Llama and Qwen2: causal attention, a language-model head.
bool IsDecoder(ModelFamily family);

// DeBERTa-v2 and v3: attention to relative positions (He et al. 2021, arXiv:2006.03654).
struct RelativeAttention {
  // The table of relative positions has 2 * span rows. 0: no relative attention.
  int64_t span = 0;
  bool bucketed = false;             // far positions share rows (position_buckets)
  int64_t farthest = 0;              // where buckets end (max_relative_positions); 0: max_positions
  bool content_to_position = false;  // c2p, a term of the scores
  bool position_to_content = false;  // p2c, another
  bool share_projections = false;    // positions go through the content's projections
  auto operator<=>(const RelativeAttention&) const = default;
};

// How far rotary positions are stretched beyond those that the model was first trained on.
struct RopeScaling {
  double factor = 1.0;
  // Llama 3: wave lengths between original_positions / high and / low are stretched in part, longer
  // ones wholly. 0: all alike ("linear").
  double low_frequency = 0.0;
  double high_frequency = 0.0;
  int64_t original_positions = 0;
  auto operator<=>(const RopeScaling&) const = default;
};

// Sizes are element counts. Of a family that is not known (ModelFamilyOf) only the name is: the
// rest is 0 or default.
struct ModelShape {
  std::string family;  // config.json's model_type: "bert", "roberta", "deberta-v2", ...
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t intermediate_size = 0;
  // Longest input the model takes, special tokens included: config.json's max_position_embeddings,
  // for RoBERTas less the pad_token_id + 1 rows that are never used.
  int64_t max_positions = 0;
  int64_t type_vocab_size = 0;
  double layer_norm_eps = 1e-12;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double initializer_range = 0.02;
  int64_t pad_token_id = 0;
  std::string hidden_act = "gelu";

  // What the families below also need. 0: the usual, so that shapes of BERT's kind leave it out.
  int64_t num_key_value_heads = 0;  // Llama, Qwen2; 0: num_heads
  int64_t head_size = 0;            // Llama, Qwen2; 0: hidden_size / num_heads
  int64_t embedding_size = 0;       // ELECTRA, DeBERTa; 0: hidden_size
  bool tied_head = false;           // decoders: the head is the word embedding
  bool attention_bias = false;      // Llama
  bool mlp_bias = false;            // Llama
  double embedding_dropout = 0.0;   // GPT-2; elsewhere it is hidden_dropout
  RelativeAttention relative;       // DeBERTa
  bool relative_norm = false;       // DeBERTa: LayerNorm of relative positions (norm_rel_ebd)
  bool no_positions = false;        // DeBERTa: no table of absolute positions
  int64_t conv_kernel_size = 0;     // DeBERTa: of the convolution beside the first layer; 0: none
  std::string conv_act = "tanh";    // DeBERTa: of that convolution
  double rope_theta = 10000.0;      // Llama, Qwen2
  RopeScaling rope;                 // Llama, Qwen2
  std::string stored_type;          // of the published weights: "float16"; empty: not said

  auto operator<=>(const ModelShape&) const = default;

  int64_t KeyValueHeads() const {
    return num_key_value_heads > 0 ? num_key_value_heads : num_heads;
  }
  int64_t HeadSize() const {
    return head_size > 0 || num_heads == 0 ? head_size : hidden_size / num_heads;
  }
  int64_t EmbeddingSize() const { return embedding_size > 0 ? embedding_size : hidden_size; }
};

// RoBERTas number positions from pad_token_id + 1, so that many rows of their table are never used.
int64_t UnusedPositions(const ModelShape& shape);

//   Unimplemented  the family is not known; names it and those that are
absl::Status CheckKnownFamily(const ModelShape& shape);

// Names of the fields in one JSON form of a shape; nullptr: the form has none.
struct ShapeKeys {
  const char* family = "family";
  const char* hidden_size = "hidden_size";
  const char* num_layers = "num_layers";
  const char* num_heads = "num_heads";
  const char* intermediate_size = "intermediate_size";
  const char* max_positions = "max_positions";
  const char* type_vocab_size = "type_vocab_size";
  const char* layer_norm_eps = "layer_norm_eps";
  const char* hidden_dropout = "hidden_dropout";
  const char* attention_dropout = "attention_dropout";
  const char* embedding_dropout = "embedding_dropout";
  const char* pad_token_id = "pad_token_id";
  const char* hidden_act = "hidden_act";
  const char* head_size = "head_size";
};

// Bounds that no real model leaves, and that keep parameter and byte counts far from 2^63.
//   InvalidArgument  a field out of range, heads that do not divide what they share; names its key
absl::Status CheckShape(const ModelShape& shape, const ShapeKeys& keys);

// Accepts what ToJson (model_fields.h) wrote, this version's or an older one's, and refuses what
// CheckShape does.
absl::StatusOr<ModelShape> ModelShapeFromJson(const nlohmann::json& json);

// Whether our trainer runs it.
bool TrainerSupports(const ModelShape& shape);

//   Unimplemented  our trainer does not run it; names what is missing and what there is
absl::Status CheckTrainable(const ModelShape& shape);

}  // namespace hpo
