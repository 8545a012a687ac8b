#include "sampler/proposer/proposal_service.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/space/search_space.h"
#include "common/study/trial.h"
#include "common/study_file/study_file.h"
#include "nlohmann/json.hpp"
#include "sampler/factory/make_sampler.h"

namespace hpo::sampler {
namespace {

absl::StatusOr<TrialState> StateFromJson(const nlohmann::json& json) {
  const auto state =
      json.is_string() ? ParseName<TrialState>(json.get<std::string>()) : std::nullopt;
  if (state && *state != TrialState::kQueued && *state != TrialState::kCancelled) return *state;
  return absl::InvalidArgumentError(
      absl::StrCat("expected RUNNING, COMPLETED, PRUNED or FAILED, got ", DescribeJson(json)));
}

absl::StatusOr<std::vector<double>> NumbersFromJson(const nlohmann::json& json) {
  return ArrayFromJson<double>(json, [](const nlohmann::json& one) -> absl::StatusOr<double> {
    if (one.is_null()) return kWorstLoss;
    if (one.is_number()) return one.get<double>();
    return absl::InvalidArgumentError(
        absl::StrCat("expected a number or null, got ", DescribeJson(one)));
  });
}

absl::StatusOr<Curve> CurveFromJson(const nlohmann::json& json) {
  Curve curve;
  if (!json.is_array()) return UnexpectedJson("reports", "an array", json);
  for (const nlohmann::json& report : json) {
    const bool valid = report.is_array() && report.size() == 2 && report[0].is_number_integer() &&
                       (report[1].is_number() || report[1].is_null());
    if (!valid) return UnexpectedJson("reports", "[step, loss]", report);
    curve.Add(report[0].get<int64_t>(), report[1].is_null()
                                            ? std::numeric_limits<double>::quiet_NaN()
                                            : report[1].get<double>());
  }
  return curve;
}

// Numbers in the type that their domains have.
//   InvalidArgument  as ValidateParams
absl::StatusOr<ParamMap> ConfigurationFromJson(const SearchSpace& space,
                                               const nlohmann::json& json) {
  HPO_ASSIGN_OR_RETURN(ParamMap params, ParamsFromJson(json));
  for (auto& [name, value] : params) {
    const Parameter* const parameter = space.Find(name);
    if (parameter != nullptr) value = Coerce(parameter->domain, value);
  }
  HPO_RETURN_IF_ERROR(ValidateParams(space, params));
  return params;
}

absl::StatusOr<HistoryTrial> TrialFromJson(const StudySpec& study, const nlohmann::json& json) {
  HistoryTrial trial;
  JsonReader reader(json, "trial");
  reader.Required("number", trial.number.value);
  reader.RequiredWith("params", trial.params, [&study](const nlohmann::json& params) {
    return ConfigurationFromJson(study.space, params);
  });
  reader.RequiredWith("state", trial.state, StateFromJson);
  reader.OptionalWith("losses", trial.losses, NumbersFromJson);
  reader.OptionalWith("reports", trial.intermediate, CurveFromJson);
  reader.OptionalWith("excesses", trial.excesses, NumbersFromJson);
  const size_t expected = trial.state == TrialState::kCompleted ? study.objectives.size() : 0;
  if (trial.losses.size() != expected) {
    reader.Fail("losses", absl::StrCat("expected ", expected, " of a trial that is ",
                                       Name(trial.state), ", got ", trial.losses.size()));
  }
  if (!trial.excesses.empty() && trial.excesses.size() != study.constraints.size()) {
    reader.Fail("excesses", absl::StrCat("expected ", study.constraints.size(), ", got ",
                                         trial.excesses.size()));
  }
  HPO_RETURN_IF_ERROR(reader.status());
  if (trial.state == TrialState::kPruned) trial.prune_reason = PruneReason::kPruner;
  for (const double excess : trial.excesses) trial.violation += std::max(0.0, excess);
  return trial;
}

// The domain that has `value` alone. Values of real numbers stay on the domain's grid.
Domain Only(const Domain& domain, const ParamValue& value) {
  if (std::holds_alternative<CategoricalDomain>(domain)) return CategoricalDomain{{value}};
  if (const auto* whole = std::get_if<IntDomain>(&domain)) {
    IntDomain only = *whole;
    only.low = only.high = std::get<int64_t>(value);
    return only;
  }
  FloatDomain only = std::get<FloatDomain>(domain);
  only.low = only.high = std::get<double>(value);
  return only;
}

// The space, narrowed to configurations with these values.
absl::StatusOr<SearchSpace> WithFixed(SearchSpace space, const nlohmann::json& json) {
  HPO_ASSIGN_OR_RETURN(const ParamMap fixed, ParamsFromJson(json));
  for (const auto& [name, given] : fixed) {
    const Parameter* const parameter = space.Find(name);
    if (parameter == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a parameter of the space, got ", name));
    }
    const ParamValue value = Coerce(parameter->domain, given);
    if (!Contains(parameter->domain, value)) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": expected a value of ",
                                                     FormatDomain(parameter->domain), ", got ",
                                                     FormatParam(value)));
    }
    space.narrowings.push_back(
        {.when = {}, .name = name, .domain = Only(parameter->domain, value)});
  }
  return space;
}

}  // namespace

absl::Status ProposalService::Learn(const nlohmann::json& request, Model& model) {
  const auto given = request.find("trials");
  if (given == request.end()) return absl::OkStatus();
  if (!given->is_array()) return UnexpectedJson("trials", "an array", *given);
  for (const nlohmann::json& json : *given) {
    HPO_ASSIGN_OR_RETURN(HistoryTrial trial, TrialFromJson(model.study, json));
    model.sampler->Observe({.sequence = ++model.sequence, .trial = std::move(trial)});
  }
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> ProposalService::Propose(const nlohmann::json& request,
                                                        const std::string& name) {
  JsonReader reader(request, "");
  std::string study;
  std::vector<std::string> closed;
  int64_t number = 0;
  bool part = false;
  reader.Optional("study", study);
  reader.Optional("close", closed);
  reader.Optional("part", part);
  reader.Required("number", number);
  HPO_RETURN_IF_ERROR(reader.status());
  for (const std::string& one : closed) models_.erase(one);
  if (!study.empty()) {
    Model model;
    HPO_ASSIGN_OR_RETURN(model.study, ParseStudyFile(study, "study", {}));
    model.sampler = MakeSampler(model.study);
    models_.insert_or_assign(name, std::move(model));
  }
  const auto found = models_.find(name);
  if (found == models_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("study: expected that of the new model ", name, ", got none"));
  }
  Model& model = found->second;
  HPO_RETURN_IF_ERROR(Learn(request, model));
  AskContext context{.number = TrialNumber{number}, .space = model.study.space};
  context.budget_trials = model.study.budget.trials;
  context.repetition = part ? Repetition::kAlways : Repetition::kWhereAllTried;
  if (request.contains("fixed")) {
    HPO_ASSIGN_OR_RETURN(context.space, WithFixed(model.study.space, request["fixed"]));
  }
  HPO_ASSIGN_OR_RETURN(const Suggestion suggestion, model.sampler->Suggest(context));
  nlohmann::json answer{{"params", ParamsToJson(suggestion.params)},
                        {"sampler", suggestion.sampler}};
  if (suggestion.all_tried) answer["all_tried"] = true;
  return answer;
}

std::string ProposalService::Answer(absl::string_view request) {
  std::string name;
  const auto answer = [&]() -> absl::StatusOr<nlohmann::json> {
    HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(request));
    JsonReader reader(json, "");
    reader.Required("model", name);
    HPO_RETURN_IF_ERROR(reader.status());
    return Propose(json, name);
  }();
  if (answer.ok()) return DumpJson(*answer);
  if (absl::IsInvalidArgument(answer.status())) models_.erase(name);
  return DumpJson({{"error", std::string(answer.status().message())},
                   {"code", absl::StatusCodeToString(answer.status().code())}});
}

void AnswerLines(std::istream& in, std::ostream& out) {
  ProposalService service;
  std::string line;
  while (std::getline(in, line)) out << service.Answer(line) << std::endl;
}

}  // namespace hpo::sampler
