// `hpo memory plan`.
#include <algorithm>
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

// The parameters that memory depends on, with the values that a command line may give them.
SearchSpace MemoryParameters() {
  const int64_t most = 1 << 20;
  const CategoricalDomain no_names;  // model.name is looked up, not chosen from a list
  SearchSpace space;
  const auto add = [&space](const std::string& name, Domain domain) {
    Parameter parameter;
    parameter.name = name;
    parameter.domain = std::move(domain);
    space.parameters.push_back(std::move(parameter));
  };
  add("model.name", no_names);
  for (const char* const name :
       {"tok.max_length", "train.batch_size", "train.grad_accum", "train.eval_batch_multiplier",
        "head.size_1", "head.size_2", "head.size_3"}) {
    add(name, IntDomain{.low = 1, .high = most});
  }
  add("head.layers", IntDomain{.low = 0, .high = 3});
  add("model.dropout", FloatDomain{.low = 0.0, .high = 0.999});
  return space;
}

// The model's name goes into the list of choices, so that any is taken.
absl::StatusOr<ParamMap> ParseConfig(const std::vector<std::string>& words) {
  SearchSpace space = MemoryParameters();
  for (const std::string& word : words) {
    constexpr absl::string_view kPrefix = "model.name=";
    if (word.rfind(kPrefix.data(), 0) != 0) continue;
    std::get<CategoricalDomain>(space.parameters[0].domain).choices = {word.substr(kPrefix.size())};
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

// What Hugging Face's step knows nothing of.
absl::Status CheckStepParams(const ParamMap& params) {
  for (const char* const name : {"train.eval_batch_multiplier", "head.layers", "head.size_1",
                                 "head.size_2", "head.size_3"}) {
    if (!params.contains(name)) continue;
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
  if (trainer) {
    basis = TrainerBasis(device);
    return AdviseConfig(OfflineDecider({}, MemoryPolicy::kStrict, {&model, 1}, device),
                        OfflineDecider({}, MemoryPolicy::kPlan, {&model, 1}, device), params, card);
  }
  HPO_RETURN_IF_ERROR(CheckStepParams(params));
  HPO_ASSIGN_OR_RETURN(const TrainingConfig config, TrainingConfigOf(params, {}));
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
