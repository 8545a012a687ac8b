#include "common/study/model_catalog.h"

#include "absl/strings/strip.h"
#include "common/base/spelling.h"
#include "common/models/model_parameters.h"

namespace hpo {
namespace {

// Encoders of BERT's kind. All take 512 tokens.
struct EncoderEntry {
  const char* name;
  const char* family;
  int64_t vocab_size;
  int64_t hidden_size;
  int64_t num_layers;
  int64_t num_heads;
  int64_t intermediate_size;
};

constexpr EncoderEntry kEncoders[] = {
    {"bert-base-uncased", "bert", 30522, 768, 12, 12, 3072},
    {"bert-base-cased", "bert", 28996, 768, 12, 12, 3072},
    {"bert-base-multilingual-cased", "bert", 119547, 768, 12, 12, 3072},
    {"bert-base-multilingual-uncased", "bert", 105879, 768, 12, 12, 3072},
    {"bert-large-uncased", "bert", 30522, 1024, 24, 16, 4096},
    {"bert-large-cased", "bert", 28996, 1024, 24, 16, 4096},
    {"sentence-transformers/all-MiniLM-L6-v2", "bert", 30522, 384, 6, 12, 1536},
    {"sentence-transformers/all-MiniLM-L12-v2", "bert", 30522, 384, 12, 12, 1536},
    {"all-minilm-l6-v2", "bert", 30522, 384, 6, 12, 1536},
    {"microsoft/MiniLM-L12-H384-uncased", "bert", 30522, 384, 12, 12, 1536},
    {"roberta-base", "roberta", 50265, 768, 12, 12, 3072},
    {"roberta-large", "roberta", 50265, 1024, 24, 16, 4096},
    {"xlm-roberta-base", "xlm-roberta", 250002, 768, 12, 12, 3072},
    {"xlm-roberta-large", "xlm-roberta", 250002, 1024, 24, 16, 4096},
    {"camembert-base", "camembert", 32005, 768, 12, 12, 3072},
    {"microsoft/deberta-v3-xsmall", "deberta-v2", 128100, 384, 12, 6, 1536},
    {"microsoft/deberta-v3-small", "deberta-v2", 128100, 768, 6, 12, 3072},
    {"microsoft/deberta-v3-base", "deberta-v2", 128100, 768, 12, 12, 3072},
    {"microsoft/deberta-v3-large", "deberta-v2", 128100, 1024, 24, 16, 4096},
    {"microsoft/mdeberta-v3-base", "deberta-v2", 251000, 768, 12, 12, 3072},
    {"microsoft/deberta-v2-xlarge", "deberta-v2", 128100, 1536, 24, 24, 6144},
    {"microsoft/deberta-v2-xxlarge", "deberta-v2", 128100, 1536, 48, 24, 6144},
    {"distilbert-base-uncased", "distilbert", 30522, 768, 6, 12, 3072},
    {"distilbert-base-cased", "distilbert", 28996, 768, 6, 12, 3072},
    {"google/electra-small-discriminator", "electra", 30522, 256, 12, 4, 1024},
    {"google/electra-base-discriminator", "electra", 30522, 768, 12, 12, 3072},
    {"google/electra-large-discriminator", "electra", 30522, 1024, 24, 16, 4096},
};

struct DecoderEntry {
  const char* name;
  const char* family;
  int64_t vocab_size;
  int64_t hidden_size;
  int64_t num_layers;
  int64_t num_heads;
  int64_t num_key_value_heads;
  int64_t intermediate_size;
  int64_t max_positions;
  bool tied_head;
  const char* stored_type;
};

constexpr char kHalf[] = "float16";
constexpr char kBrain[] = "bfloat16";

constexpr DecoderEntry kDecoders[] = {
    {"gpt2", "gpt2", 50257, 768, 12, 12, 12, 3072, 1024, true, ""},
    {"gpt2-medium", "gpt2", 50257, 1024, 24, 16, 16, 4096, 1024, true, ""},
    {"gpt2-large", "gpt2", 50257, 1280, 36, 20, 20, 5120, 1024, true, ""},
    {"gpt2-xl", "gpt2", 50257, 1600, 48, 25, 25, 6400, 1024, true, ""},
    {"meta-llama/Llama-2-7b-hf", "llama", 32000, 4096, 32, 32, 32, 11008, 4096, false, kHalf},
    {"meta-llama/Meta-Llama-3-8B", "llama", 128256, 4096, 32, 32, 8, 14336, 8192, false, kBrain},
    {"meta-llama/Llama-3.1-8B", "llama", 128256, 4096, 32, 32, 8, 14336, 131072, false, kBrain},
    {"meta-llama/Llama-3.2-1B", "llama", 128256, 2048, 16, 32, 8, 8192, 131072, true, kBrain},
    {"meta-llama/Llama-3.2-3B", "llama", 128256, 3072, 28, 24, 8, 8192, 131072, true, kBrain},
    {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "llama", 32000, 2048, 22, 32, 4, 5632, 2048, false,
     kBrain},
    {"Qwen/Qwen2.5-0.5B", "qwen2", 151936, 896, 24, 14, 2, 4864, 32768, true, kBrain},
    {"Qwen/Qwen2.5-0.5B-Instruct", "qwen2", 151936, 896, 24, 14, 2, 4864, 32768, true, kBrain},
    {"Qwen/Qwen2.5-1.5B", "qwen2", 151936, 1536, 28, 12, 2, 8960, 131072, true, kBrain},
    {"Qwen/Qwen2.5-1.5B-Instruct", "qwen2", 151936, 1536, 28, 12, 2, 8960, 32768, true, kBrain},
    {"Qwen/Qwen2.5-3B", "qwen2", 151936, 2048, 36, 16, 2, 11008, 32768, true, kBrain},
    {"Qwen/Qwen2.5-3B-Instruct", "qwen2", 151936, 2048, 36, 16, 2, 11008, 32768, true, kBrain},
    {"Qwen/Qwen2.5-7B", "qwen2", 152064, 3584, 28, 28, 4, 18944, 131072, false, kBrain},
    {"Qwen/Qwen2.5-7B-Instruct", "qwen2", 152064, 3584, 28, 28, 4, 18944, 32768, false, kBrain},
    {"Qwen/Qwen2.5-14B", "qwen2", 152064, 5120, 48, 40, 8, 13824, 131072, false, kBrain},
    {"Qwen/Qwen2.5-14B-Instruct", "qwen2", 152064, 5120, 48, 40, 8, 13824, 32768, false, kBrain},
};

// Where the hub has put models that once had no owner in their name.
constexpr const char* kOwners[] = {"google-bert/", "FacebookAI/", "distilbert/", "almanach/",
                                   "openai-community/"};

// All DeBERTas above: positions in 256 buckets a direction, through the content's projections.
void AddDebertaParts(const EncoderEntry& entry, ModelShape& shape) {
  shape.type_vocab_size = 0;
  shape.layer_norm_eps = 1e-7;
  shape.relative = {.span = 256,
                    .bucketed = true,
                    .content_to_position = true,
                    .position_to_content = true,
                    .share_projections = true};
  shape.relative_norm = true;
  shape.no_positions = true;
  if (absl::string_view(entry.name).find("deberta-v2-") != absl::string_view::npos) {
    shape.conv_kernel_size = 3;
    shape.conv_act = "gelu";
  }
}

ModelShape ShapeOf(const EncoderEntry& entry) {
  ModelShape shape;
  shape.family = entry.family;
  shape.vocab_size = entry.vocab_size;
  shape.hidden_size = entry.hidden_size;
  shape.num_layers = entry.num_layers;
  shape.num_heads = entry.num_heads;
  shape.intermediate_size = entry.intermediate_size;
  shape.max_positions = 512;
  const ModelFamily family = *ModelFamilyOf(entry.family);
  if (family == ModelFamily::kDeberta) {
    AddDebertaParts(entry, shape);
  } else if (family == ModelFamily::kRoberta) {
    shape.type_vocab_size = 1;
    shape.pad_token_id = 1;
    shape.layer_norm_eps = 1e-5;
  } else if (family != ModelFamily::kDistilBert) {
    shape.type_vocab_size = 2;
  }
  // Of the ELECTRAs only the small one embeds narrower than it computes.
  if (family == ModelFamily::kElectra && entry.hidden_size == 256) shape.embedding_size = 128;
  return shape;
}

ModelShape ShapeOf(const DecoderEntry& entry) {
  ModelShape shape;
  shape.family = entry.family;
  shape.vocab_size = entry.vocab_size;
  shape.hidden_size = entry.hidden_size;
  shape.num_layers = entry.num_layers;
  shape.num_heads = entry.num_heads;
  if (entry.num_key_value_heads != entry.num_heads) {
    shape.num_key_value_heads = entry.num_key_value_heads;
  }
  shape.intermediate_size = entry.intermediate_size;
  shape.max_positions = entry.max_positions;
  shape.tied_head = entry.tied_head;
  shape.stored_type = entry.stored_type;
  if (*ModelFamilyOf(entry.family) == ModelFamily::kGpt2) {
    shape.layer_norm_eps = 1e-5;
    shape.embedding_dropout = 0.1;
    shape.hidden_act = "gelu_new";
    return shape;
  }
  shape.layer_norm_eps = *ModelFamilyOf(entry.family) == ModelFamily::kQwen2 ? 1e-6 : 1e-5;
  shape.hidden_dropout = 0.0;
  shape.attention_dropout = 0.0;
  shape.hidden_act = "silu";
  return shape;
}

std::optional<ModelShape> Find(absl::string_view name) {
  for (const EncoderEntry& entry : kEncoders) {
    if (name == entry.name) return ShapeOf(entry);
  }
  for (const DecoderEntry& entry : kDecoders) {
    if (name == entry.name) return ShapeOf(entry);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ModelShape> KnownModelShape(absl::string_view name) {
  if (std::optional<ModelShape> shape = Find(name); shape.has_value()) return shape;
  for (const char* owner : kOwners) {
    if (absl::string_view bare = name; absl::ConsumePrefix(&bare, owner)) return Find(bare);
  }
  // Instruction tuning leaves the shape; where it does not, the table has both.
  if (absl::string_view base = name; absl::ConsumeSuffix(&base, "-Instruct")) return Find(base);
  return std::nullopt;
}

std::vector<std::string> KnownModelNames() {
  std::vector<std::string> names;
  for (const EncoderEntry& entry : kEncoders) names.push_back(entry.name);
  for (const DecoderEntry& entry : kDecoders) names.push_back(entry.name);
  return names;
}

std::string FullModelName(absl::string_view name) {
  if (KnownModelShape(name).has_value()) return std::string(name);
  return NameContinued(name, KnownModelNames()).value_or(std::string(name));
}

void AddModelFacts(SearchSpace& space, const std::string& model, const ModelShape& shape,
                   bool listed_heavy) {
  const bool heavy = listed_heavy || IsHeavy(shape);
  space.model_facts[model] = {{kModelClassFact, std::string(heavy ? "heavy" : "base")},
                              {kModelFamilyFact, shape.family}};
}

void AddModelFacts(SearchSpace& space, const std::string& model, bool listed_heavy) {
  if (listed_heavy) space.model_facts[model] = {{kModelClassFact, std::string("heavy")}};
}

}  // namespace hpo
