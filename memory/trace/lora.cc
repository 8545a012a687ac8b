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

bool IsLinear(const ParameterTensor& tensor) {
  return tensor.kind == ParameterKind::kLinear || tensor.kind == ParameterKind::kTransposedLinear;
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
  //   InvalidArgument, Unimplemented  as AdaptedLayers
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

  // Whether `module`, a linear layer, is one; remembers what matched.
  bool Matches(const std::string& module) {
    known_.insert(module.substr(module.rfind('.') + 1));
    bool found = false;
    for (size_t i = 0; i < targets_.size(); ++i) {
      const bool matches = targets_[i] == kAllLinear || MatchesEnd(module, targets_[i]);
      if (!matches) continue;
      matched_[i] = true;
      found = true;
    }
    return found;
  }

  // Once all modules were asked for.
  absl::Status CheckAllMatched() const {
    for (size_t i = 0; i < targets_.size(); ++i) {
      if (matched_[i]) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "lora.targets: expected ends of names of linear layers of ", family_, " (",
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
    if (targets.Matches(module)) layers.push_back(LayerOf(tensor, module));
  }
  HPO_RETURN_IF_ERROR(targets.CheckAllMatched());
  return layers;
}

absl::string_view Name(FrozenType type) {
  switch (type) {
    case FrozenType::kFloat32:
      return "fp32";
    case FrozenType::kBFloat16:
      return "bf16";
    case FrozenType::kNf4:
      return "nf4";
  }
  return "";
}

}  // namespace hpo::memory
