// `hpo memory plan`.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/json.h"
#include "cli/memory_commands.h"
#include "cli/model_step.h"
#include "cli/offline_card.h"
#include "cli/param_words.h"
#include "cli/table.h"
#include "cli/wording.h"
#include "common/memory/config_advice.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::ordered_json;

// Of any value.
constexpr const char* kTexts[] = {"model.name", "lora.targets"};

// The parameters that memory depends on, with the values that a command line may give them.
SearchSpace MemoryParameters() {
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
  for (const char* const name : {"model.freeze_layers", "memory.checkpoint_every", "lora.rank"}) {
    add(name, IntDomain{.low = 0, .high = most});
  }
  for (const char* const name :
       {"model.dropout", "head.dropout", "lora.dropout", "train.momentum"}) {
    add(name, FloatDomain{.low = 0.0, .high = 0.999});
  }
  using Text = std::string;
  add_words("model.freeze_embeddings", {true, false});
  add_words("lora.base", {Text("fp32"), Text("bf16"), Text("nf4")});
  add_words("train.optimizer", {Text("adamw"), Text("adamw_8bit"), Text("adafactor"), Text("sgd")});
  add_words("train.precision", {Text("fp32"), Text("tf32"), Text("bf16"), Text("fp16")});
  return space;
}

// A text goes into the list of choices, so that any is taken.
absl::StatusOr<ParamMap> ParseConfig(const std::vector<std::string>& words) {
  SearchSpace space = MemoryParameters();
  for (size_t i = 0; i < std::size(kTexts); ++i) {
    const std::string prefix = absl::StrCat(kTexts[i], "=");
    for (const std::string& word : words) {
      if (word.rfind(prefix, 0) != 0) continue;
      std::get<CategoricalDomain>(space.parameters[i].domain).choices = {
          word.substr(prefix.size())};
    }
  }
  HPO_ASSIGN_OR_RETURN(ParamMap params, ParseParamWords(words, space));
  if (!params.contains("model.name")) {
    return absl::InvalidArgumentError("expected model.name=NAME, got none");
  }
  for (const auto& [name, value] : params) {
    const Parameter* const parameter = space.Find(name);
    if (Contains(parameter->domain, value)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": expected ", FormatDomain(parameter->domain), ", got ", FormatParam(value)));
  }
  return params;
}

Json VerdictJson(const ConfigVerdict& verdict) {
  const MemoryVerdict shown{
      .estimate = verdict.planned.estimate,
      .plan = verdict.planned.plan,
      .fits = verdict.planned.fits,
      .usable = verdict.usable,
      .explanation = verdict.planned.fits ? "" : ExplainMisfit(verdict.planned, verdict.usable)};
  Json json = MemoryJson(shown);
  json["margin"] = verdict.planned.margin;
  json["required_bytes"] = verdict.required.count;
  return json;
}

Json AdviceJson(const ParamMap& params, Bytes card, const Basis& basis,
                const ConfigAdvice& advice) {
  Json changes = Json::array();
  for (const ConfigChange& change : advice.changes) {
    changes.push_back({{"change", change.what},
                       {"cost", change.cost},
                       {"params", Json::parse(ParamsToJson(change.params).dump())},
                       {"verdict", VerdictJson(change.verdict)}});
  }
  return {{"params", Json::parse(ParamsToJson(params).dump())},
          {"card_bytes", card.count},
          {"basis", BasisJson(basis)},
          {"strict", VerdictJson(advice.literal)},
          {"changes", std::move(changes)},
          {"fits", advice.fits},
          {"smallest_card_bytes", advice.smallest_capacity.count}};
}

std::string Verdict(const ConfigAdvice& advice, Bytes card) {
  const std::string size = FormatBytes(card);
  if (advice.literal.planned.fits) return absl::StrCat("fits ", size, " as it is\n");
  const std::string smallest = absl::StrCat("; with micro-batches of one row it runs from ",
                                            FormatBytes(advice.smallest_capacity), " on\n");
  if (advice.fits) return absl::StrCat("fits ", size, " with these changes", smallest);
  return absl::StrCat("does not fit ", size, ": take a smaller model", smallest);
}

std::string AdviceText(Bytes card, const Basis& basis, const ConfigAdvice& advice, int width) {
  Table table({{"CHANGE"},
               {"BATCH = PARTS"},
               {"BEFORE", Align::kRight},
               {"NEEDED", Align::kRight},
               {"USABLE", Align::kRight},
               {"FITS"},
               {"COST"}});
  const auto row = [&](const std::string& what, Bytes before, const ConfigVerdict& verdict,
                       const std::string& cost) {
    table.AddRow({what, DescribePlan(verdict.planned.plan), OrDash(before),
                  FormatBytes(verdict.required), FormatBytes(verdict.usable),
                  verdict.planned.fits ? "yes" : "no", cost});
  };
  row("as it is", Bytes{}, advice.literal, "-");
  Bytes before = advice.literal.required;
  for (const ConfigChange& change : advice.changes) {
    row(change.what, before, change.verdict, change.cost);
    before = change.verdict.required;
  }
  return absl::StrCat(table.Render(width), "\n", Verdict(advice, card), BasisText(basis), "\n");
}

// What Hugging Face's step has too.
constexpr absl::string_view kOfBothKernels[] = {"model.name", "model.dropout", "tok.max_length",
                                                "train.batch_size", "train.grad_accum"};

absl::Status CheckStepParams(const ParamMap& params) {
  for (const auto& [name, value] : params) {
    if (std::count(std::begin(kOfBothKernels), std::end(kOfBothKernels), name) > 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected none, as this is a parameter of hpo-trainer alone"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ConfigAdvice> Advise(const ModelFacts& model, const MemoryPlanOptions& options,
                                    const OfflineDevice& device, const ParamMap& params,
                                    Basis& basis) {
  const Bytes card = device.cards.front();
  HPO_ASSIGN_OR_RETURN(const bool trainer, UsesTrainer(options.kernels, model.shape));
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, {}));
  if (trainer) {
    basis = TrainerBasis(device);
    basis.precision = std::string(Name(config.precision));
    if (config.optimizer != OptimizerKind::kAdamW) {
      basis.optimizer = std::string(Name(config.optimizer));
    }
    return AdviseConfig(OfflineDecider({}, MemoryPolicy::kStrict, {&model, 1}, device),
                        OfflineDecider({}, MemoryPolicy::kPlan, {&model, 1}, device), params, card);
  }
  HPO_RETURN_IF_ERROR(CheckStepParams(params));
  HPO_ASSIGN_OR_RETURN(const StepDescription step,
                       MakeModelStep(model, options.kernels, device, config));
  basis = BasisOf(step, options.kernels);
  return AdviseStep(step, params, device, card);
}

}  // namespace

absl::StatusOr<bool> ShowMemoryPlan(Session& session, const MemoryPlanOptions& options) {
  HPO_ASSIGN_OR_RETURN(const ParamMap params, ParseConfig(options.params));
  HPO_ASSIGN_OR_RETURN(const ModelFacts model, FindModel(*FindString(params, "model.name")));
  HPO_ASSIGN_OR_RETURN(const OfflineDevice device, ParseDevice(options.device));
  Basis basis;
  HPO_ASSIGN_OR_RETURN(const ConfigAdvice advice, Advise(model, options, device, params, basis));
  const Bytes card = device.cards.front();
  if (session.json) {
    PrintJson(AdviceJson(params, card, basis, advice), session.out);
  } else {
    session.out << AdviceText(card, basis, advice, session.terminal.columns);
  }
  return advice.fits;
}

}  // namespace hpo
