#include "cli/memory/memory_params.h"

#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/render/param_words.h"
#include "common/base/status.h"

namespace hpo::cli {
namespace {

// Of any value.
constexpr const char* kTexts[] = {"model.name", "lora.targets"};

// With the values that a command line may give them.
SearchSpace MemorySpace() {
  const int64_t most = 1 << 20;
  SearchSpace space;
  const auto add = [&space](const std::string& name, Domain domain) {
    Parameter parameter;
    parameter.name = name;
    parameter.domain = std::move(domain);
    space.parameters.push_back(std::move(parameter));
  };
  const auto add_words = [&add](const std::string& name, std::vector<ParamValue> words) {
    add(name, CategoricalDomain{.choices = std::move(words)});
  };
  // Looked up, not chosen from a list.
  for (const char* const name : kTexts) add_words(name, {});
  for (const char* const name :
       {"tok.max_length", "train.batch_size", "train.grad_accum", "train.eval_batch_multiplier",
        "head.size_1", "head.size_2", "head.size_3"}) {
    add(name, IntDomain{.low = 1, .high = most});
  }
  add("head.layers", IntDomain{.low = 0, .high = 3});
  for (const char* const name :
       {"model.freeze_layers", "memory.checkpoint_every", "memory.loss_rows", "lora.rank"}) {
    add(name, IntDomain{.low = 0, .high = most});
  }
  for (const char* const name :
       {"model.dropout", "head.dropout", "lora.dropout", "train.momentum"}) {
    add(name, FloatDomain{.low = 0.0, .high = 0.999});
  }
  add("lora.alpha", FloatDomain{.low = 0.001, .high = 1e6});
  using Text = std::string;
  add_words("model.freeze_embeddings", {true, false});
  add_words("memory.unpadded", {true, false});
  add_words("train.group_by_length", {true, false});
  add_words("lora.base", {Text("fp32"), Text("bf16"), Text("nf4")});
  add_words("train.optimizer", {Text("adamw"), Text("adamw_8bit"), Text("adafactor"), Text("sgd")});
  add_words("train.precision", {Text("fp32"), Text("tf32"), Text("bf16"), Text("fp16")});
  return space;
}

}  // namespace

// A text goes into the list of choices, so that any is taken.
absl::StatusOr<ParamMap> ParseMemoryParams(const std::vector<std::string>& words) {
  SearchSpace space = MemorySpace();
  for (size_t i = 0; i < std::size(kTexts); ++i) {
    const std::string prefix = absl::StrCat(kTexts[i], "=");
    for (const std::string& word : words) {
      if (word.rfind(prefix, 0) != 0) continue;
      std::get<CategoricalDomain>(space.parameters[i].domain).choices = {
          word.substr(prefix.size())};
    }
  }
  HPO_ASSIGN_OR_RETURN(ParamMap params,
                       ParseParamWords(words, space, "memory depends on no parameter"));
  for (const auto& [name, value] : params) {
    const Parameter* const parameter = space.Find(name);
    if (Contains(parameter->domain, value)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": expected ", FormatDomain(parameter->domain), ", got ", FormatParam(value)));
  }
  return params;
}

absl::StatusOr<std::string> ModelNameOf(const ParamMap& params) {
  const std::optional<std::string> name = FindString(params, kModelNameParameter);
  if (name.has_value()) return *name;
  return absl::InvalidArgumentError("expected model.name=NAME, got none");
}

}  // namespace hpo::cli
