#include "common/memory/lora.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr int64_t kMaxRank = 1 << 16;

constexpr int64_t kNf4Block = 64;
constexpr int64_t kScalesBlock = 256;
constexpr int64_t kNf4TableBytes = 16 * 4;
constexpr int64_t kScalesTableBytes = 256 * 4;

int64_t CeilDiv(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

// The module that `tensor` is the weight of; nullopt for a bias, or what has no adapter.
std::optional<std::string> AdaptedModule(const ParameterTensor& tensor) {
  if (tensor.kind != ParameterKind::kLinear && tensor.kind != ParameterKind::kTransposedLinear &&
      tensor.kind != ParameterKind::kEmbedding) {
    return std::nullopt;
  }
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

bool IsTarget(const ParameterTensor& tensor, const std::string& module, const std::string& target) {
  if (target != kAllLinear) return MatchesEnd(module, target);
  return tensor.kind != ParameterKind::kEmbedding && !IsHead(tensor.name);
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

// A and B of one target.
void AddAdapter(const ParameterTensor& tensor, const std::string& module, int64_t rank,
                std::vector<ParameterTensor>& out) {
  const bool embedding = tensor.kind == ParameterKind::kEmbedding;
  // A linear layer's weight is [outputs, inputs], GPT-2's and a table's the other way round.
  const bool transposed = embedding || tensor.kind == ParameterKind::kTransposedLinear;
  const int64_t inputs = transposed ? tensor.rows : tensor.columns;
  const int64_t outputs = transposed ? tensor.columns : tensor.rows;
  const char* const name = embedding ? "lora_embedding_" : "lora_";
  const char* const end = embedding ? ".default" : ".default.weight";
  const ParameterKind kind = embedding ? ParameterKind::kEmbedding : ParameterKind::kLinear;
  out.push_back({absl::StrCat(module, ".", name, "A", end), kind, rank, inputs, tensor.layer});
  out.push_back({absl::StrCat(module, ".", name, "B", end), kind, outputs, rank, tensor.layer});
}

// Targets that nothing was found for.
absl::Status CheckAllMatched(const std::vector<std::string>& targets,
                             const std::vector<bool>& matched, const std::string& family) {
  for (size_t i = 0; i < targets.size(); ++i) {
    if (!matched[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("lora.targets: expected ends of names of linear layers or embeddings of ",
                       family, ", got '", targets[i], "'"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ParameterTensor>> LoraTensors(const ModelShape& shape,
                                                         const TaskHead& head,
                                                         const LoraOptions& options) {
  if (options.rank < 1 || options.rank > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("lora.rank: expected an integer in [1, ", kMaxRank, "], got ", options.rank));
  }
  HPO_ASSIGN_OR_RETURN(const std::vector<ParameterTensor> base, ParameterTensors(shape, head));
  std::vector<std::string> targets = options.targets;
  if (targets.empty()) {
    HPO_ASSIGN_OR_RETURN(targets, DefaultTargets(shape));
  }
  const bool trains_head = head.kind == TaskHead::Kind::kSequenceClassification;
  std::vector<bool> matched(targets.size());
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
    if (!module.has_value()) continue;
    bool adapted = false;
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!IsTarget(tensor, *module, targets[i])) continue;
      matched[i] = true;
      adapted = true;
    }
    if (adapted) AddAdapter(tensor, *module, options.rank, trained);
  }
  HPO_RETURN_IF_ERROR(CheckAllMatched(targets, matched, shape.family));
  return trained;
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
  const bool linear =
      tensor.kind == ParameterKind::kLinear || tensor.kind == ParameterKind::kTransposedLinear;
  if (!linear || IsHead(tensor.name)) return {storage.rest_element_bytes * elements};
  const int64_t scales = CeilDiv(elements, kNf4Block);
  std::vector<int64_t> bytes = {CeilDiv(elements, 2), kNf4TableBytes};
  if (storage.double_quantization) {
    bytes.insert(bytes.end(), {scales, 4 * CeilDiv(scales, kScalesBlock), 4});
  } else {
    bytes.push_back(4 * scales);
  }
  return bytes;
}

Bytes FrozenBytes(const std::vector<ParameterTensor>& tensors, const FrozenStorage& storage,
                  int64_t granularity) {
  int64_t total = 0;
  const auto add = [&](int64_t bytes) { total += CeilDiv(bytes, granularity) * granularity; };
  for (const ParameterTensor& tensor : tensors) {
    for (const int64_t bytes : StoredTensorBytes(tensor, storage)) add(bytes);
  }
  if (storage.type == FrozenStorage::Type::kNf4 && storage.double_quantization) {
    add(kScalesTableBytes);
  }
  return Bytes{total};
}

}  // namespace hpo
