#include "common/model_catalog.h"

namespace hpo {
namespace {

struct CatalogEntry {
  const char* name;
  const char* family;
  int64_t vocab_size;
  int64_t hidden_size;
  int64_t num_layers;
  int64_t num_heads;
};

constexpr CatalogEntry kCatalog[] = {
    {"bert-base-uncased", "bert", 30522, 768, 12, 12},
    {"bert-large-uncased", "bert", 30522, 1024, 24, 16},
    {"roberta-base", "roberta", 50265, 768, 12, 12},
    {"roberta-large", "roberta", 50265, 1024, 24, 16},
    {"microsoft/deberta-v3-base", "deberta-v2", 128100, 768, 12, 12},
    {"microsoft/deberta-v3-large", "deberta-v2", 128100, 1024, 24, 16},
    {"xlm-roberta-base", "xlm-roberta", 250002, 768, 12, 12},
    {"all-minilm-l6-v2", "bert", 30522, 384, 6, 12},
};

// All of them take 512 tokens and have feed-forward layers of four times the hidden size.
ModelShape ShapeOf(const CatalogEntry& entry) {
  ModelShape shape;
  shape.family = entry.family;
  shape.vocab_size = entry.vocab_size;
  shape.hidden_size = entry.hidden_size;
  shape.num_layers = entry.num_layers;
  shape.num_heads = entry.num_heads;
  shape.intermediate_size = 4 * entry.hidden_size;
  shape.max_positions = 512;
  if (shape.family == "bert") {
    shape.type_vocab_size = 2;
  } else if (shape.family == "deberta-v2") {
    shape.type_vocab_size = 0;
    shape.layer_norm_eps = 1e-7;
  } else {
    shape.type_vocab_size = 1;
    shape.pad_token_id = 1;
    shape.layer_norm_eps = 1e-5;
  }
  return shape;
}

}  // namespace

std::optional<ModelShape> KnownModelShape(absl::string_view name) {
  for (const CatalogEntry& entry : kCatalog) {
    if (name == entry.name) return ShapeOf(entry);
  }
  return std::nullopt;
}

void AddModelFacts(SearchSpace& space, const std::string& model, const ModelShape& shape,
                   bool listed_heavy) {
  const bool heavy = listed_heavy || NumParameters(shape) >= kHeavyParameters;
  space.model_facts[model] = {{kModelClassFact, std::string(heavy ? "heavy" : "base")},
                              {kModelFamilyFact, shape.family}};
}

void AddModelFacts(SearchSpace& space, const std::string& model, bool listed_heavy) {
  if (listed_heavy) space.model_facts[model] = {{kModelClassFact, std::string("heavy")}};
}

}  // namespace hpo
