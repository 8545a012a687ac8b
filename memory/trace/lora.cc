#include "memory/trace/lora.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/models/model_modules.h"

namespace hpo::memory {
namespace {

constexpr int64_t kMaxRank = 1 << 16;

constexpr int64_t kScalesBlock = 256;
constexpr int64_t kNf4TableBytes = 16 * 4;

int64_t CeilDiv(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

bool IsLinear(const ParameterTensor& tensor) {
  return tensor.kind == ParameterKind::kLinear || tensor.kind == ParameterKind::kTransposedLinear;
}

// The module that `tensor` is the weight of; nullopt for a bias, or what has no adapter.
std::optional<std::string> AdaptedModule(const ParameterTensor& tensor) {
  if (!IsLinear(tensor) && tensor.kind != ParameterKind::kEmbedding) return std::nullopt;
  return std::string(absl::StripSuffix(tensor.name, ".weight"));
}

// Outermost modules whose names end so are trained whole under a classification head.
std::optional<std::string> WhollyTrainedModule(absl::string_view name) {
  const std::string outermost(name.substr(0, name.find('.')));
  if (absl::EndsWith(outermost, "classifier") || absl::EndsWith(outermost, "score")) {
    return outermost;
  }
  return std::nullopt;
}

bool IsHead(absl::string_view name) {
  return WhollyTrainedModule(name).has_value() || absl::StartsWith(name, "lm_head.");
}

bool MatchesEnd(absl::string_view module, absl::string_view target) {
  return module == target || absl::EndsWith(module, absl::StrCat(".", target));
}

absl::StatusOr<std::vector<std::string>> DefaultTargets(const ModelShape& shape) {
  switch (*ModelFamilyOf(shape.family)) {
    case ModelFamily::kBert:
    case ModelFamily::kElectra:
      return std::vector<std::string>{"query", "value"};
    case ModelFamily::kDeberta:
      return std::vector<std::string>{"query_proj", "value_proj"};
    case ModelFamily::kGpt2:
      return std::vector<std::string>{"c_attn"};
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      return std::vector<std::string>{"q_proj", "v_proj"};
    case ModelFamily::kRoberta:
      if (shape.family != "camembert") return std::vector<std::string>{"query", "value"};
      break;
    case ModelFamily::kDistilBert:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "lora.targets: expected names of modules (peft has no default for ", shape.family, ")"));
}

// A and B of an embedding, whose table is [rows, width].
std::vector<ParameterTensor> EmbeddingAdapter(const ParameterTensor& table,
                                              const std::string& module, int64_t rank) {
  const auto named = [&module](const char* part) {
    return absl::StrCat(module, ".lora_embedding_", part, ".default");
  };
  return {{named("A"), ParameterKind::kEmbedding, rank, table.rows, table.layer},
          {named("B"), ParameterKind::kEmbedding, table.columns, rank, table.layer}};
}

// A linear layer's weight is [outputs, inputs], GPT-2's the other way round.
AdaptedLayer LayerOf(const ParameterTensor& weight, const std::string& module) {
  const bool transposed = weight.kind == ParameterKind::kTransposedLinear;
  return {.module = module,
          .inputs = transposed ? weight.rows : weight.columns,
          .outputs = transposed ? weight.columns : weight.rows,
          .layer = weight.layer};
}

// Finds the modules that targets name.
class TargetMatcher {
 public:
  //   InvalidArgument  as LoraTensors
  static absl::StatusOr<TargetMatcher> Create(const ModelShape& shape, const LoraOptions& options) {
    if (options.rank < 1 || options.rank > kMaxRank) {
      return absl::InvalidArgumentError(absl::StrCat("lora.rank: expected an integer in [1, ",
                                                     kMaxRank, "], got ", options.rank));
    }
    HPO_RETURN_IF_ERROR(CheckKnownFamily(shape));
    TargetMatcher matcher;
    matcher.family_ = shape.family;
    matcher.targets_ = options.targets;
    if (options.targets.empty()) {
      HPO_ASSIGN_OR_RETURN(matcher.targets_, DefaultTargets(shape));
    }
    matcher.matched_.resize(matcher.targets_.size());
    return matcher;
  }

  // Whether `tensor`, the weight of `module`, is one; remembers what matched.
  bool Matches(const ParameterTensor& tensor, const std::string& module) {
    known_.insert(module.substr(module.rfind('.') + 1));
    bool found = false;
    for (size_t i = 0; i < targets_.size(); ++i) {
      const bool matches = targets_[i] == kAllLinear ? IsLinear(tensor) && !IsHead(tensor.name)
                                                     : MatchesEnd(module, targets_[i]);
      if (!matches) continue;
      matched_[i] = true;
      found = true;
    }
    return found;
  }

  // Once all modules were asked for. `kinds`: of those.
  absl::Status CheckAllMatched(absl::string_view kinds) const {
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (matched_[i]) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "lora.targets: expected ends of names of ", kinds, " of ", family_, " (",
          absl::StrJoin(known_, ", "), ") or ", kAllLinear, ", got '", targets_[i], "'"));
    }
    return absl::OkStatus();
  }

 private:
  std::string family_;
  std::vector<std::string> targets_;
  std::vector<bool> matched_;
  std::set<std::string> known_;  // last parts of the names
};

}  // namespace

std::vector<ParameterTensor> AdapterTensors(const AdaptedLayer& layer, int64_t rank) {
  const auto named = [&layer](const char* part) {
    return absl::StrCat(layer.module, ".lora_", part, ".default.weight");
  };
  return {{named("A"), ParameterKind::kLinear, rank, layer.inputs, layer.layer},
          {named("B"), ParameterKind::kLinear, layer.outputs, rank, layer.layer}};
}

absl::StatusOr<std::vector<ParameterTensor>> LoraTensors(const ModelShape& shape,
                                                         const TaskHead& head,
                                                         const LoraOptions& options) {
  HPO_ASSIGN_OR_RETURN(TargetMatcher targets, TargetMatcher::Create(shape, options));
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> base, ParameterTensors(shape, head));
  const bool trains_head = head.kind == TaskHead::Kind::kSequenceClassification;
  std::vector<ParameterTensor> trained;
  for (const ParameterTensor& tensor : base) {
    const std::optional<std::string> whole = WhollyTrainedModule(tensor.name);
    if (trains_head && whole.has_value()) {
      ParameterTensor copy = tensor;
      copy.name.insert(whole->size(), ".modules_to_save.default");
      trained.push_back(std::move(copy));
      continue;
    }
    const std::optional<std::string> module = AdaptedModule(tensor);
    if (!module.has_value() || !targets.Matches(tensor, *module)) continue;
    for (ParameterTensor& part : tensor.kind == ParameterKind::kEmbedding
                                     ? EmbeddingAdapter(tensor, *module, options.rank)
                                     : AdapterTensors(LayerOf(tensor, *module), options.rank)) {
      trained.push_back(std::move(part));
    }
  }
  HPO_RETURN_IF_ERROR(targets.CheckAllMatched("linear layers or embeddings"));
  return trained;
}

absl::StatusOr<std::vector<AdaptedLayer>> AdaptedLayers(const ModelShape& shape,
                                                        const LoraOptions& options) {
  HPO_ASSIGN_OR_RETURN(TargetMatcher targets, TargetMatcher::Create(shape, options));
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> base,
                       ParameterTensors(shape, {.kind = TaskHead::Kind::kSequenceClassification}));
  const std::string prefix = absl::StrCat(ModulesOf(*ModelFamilyOf(shape.family)).prefix, ".");
  std::vector<AdaptedLayer> layers;
  for (const ParameterTensor& tensor : base) {
    if (!IsLinear(tensor) || !absl::StartsWith(tensor.name, prefix)) continue;
    const std::string module(absl::StripSuffix(tensor.name, ".weight"));
    if (targets.Matches(tensor, module)) layers.push_back(LayerOf(tensor, module));
  }
  HPO_RETURN_IF_ERROR(targets.CheckAllMatched("linear layers"));
  return layers;
}

absl::string_view Name(FrozenStorage::Type type) {
  switch (type) {
    case FrozenStorage::Type::kFloat32:
      return "fp32";
    case FrozenStorage::Type::kFloat16:
      return "fp16";
    case FrozenStorage::Type::kBFloat16:
      return "bf16";
    case FrozenStorage::Type::kNf4:
      return "nf4";
  }
  return "";
}

std::vector<int64_t> StoredTensorBytes(const ParameterTensor& tensor,
                                       const FrozenStorage& storage) {
  const int64_t elements = tensor.NumElements();
  switch (storage.type) {
    case FrozenStorage::Type::kFloat32:
      return {4 * elements};
    case FrozenStorage::Type::kFloat16:
    case FrozenStorage::Type::kBFloat16:
      return {2 * elements};
    case FrozenStorage::Type::kNf4:
      break;
  }
  // Linear layers are replaced; GPT-2's transposed ones are too (bitsandbytes turns them around).
  if (!IsLinear(tensor) || IsHead(tensor.name)) return {storage.rest_element_bytes * elements};
  const int64_t scales = CeilDiv(elements, kNf4Block);
  std::vector<int64_t> bytes = {CeilDiv(elements, 2), kNf4TableBytes};
  if (storage.double_quantization) {
    bytes.insert(bytes.end(), {scales, 4 * CeilDiv(scales, kScalesBlock), 4});
  } else {
    bytes.push_back(4 * scales);
  }
  return bytes;
}

}  // namespace hpo::memory
