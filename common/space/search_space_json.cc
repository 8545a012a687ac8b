#include "common/space/search_space_json.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

nlohmann::json ToJson(const FloatDomain& domain) {
  return {{"kind", "float"},
          {"low", domain.low},
          {"high", domain.high},
          {"step", domain.step.has_value() ? nlohmann::json(*domain.step) : nlohmann::json()},
          {"log", domain.log}};
}

nlohmann::json ToJson(const IntDomain& domain) {
  return {{"kind", "int"},
          {"low", domain.low},
          {"high", domain.high},
          {"step", domain.step},
          {"log", domain.log}};
}

nlohmann::json ValuesToJson(const std::vector<ParamValue>& values) {
  nlohmann::json json = nlohmann::json::array();
  for (const ParamValue& value : values) json.push_back(ParamToJson(value));
  return json;
}

nlohmann::json ToJson(const CategoricalDomain& domain) {
  return {{"kind", "choices"}, {"choices", ValuesToJson(domain.choices)}};
}

nlohmann::json ConditionsToJson(const std::vector<Condition>& conditions) {
  nlohmann::json json = nlohmann::json::array();
  for (const Condition& condition : conditions) {
    json.push_back({{"name", condition.name}, {"values", ValuesToJson(condition.values)}});
  }
  return json;
}

absl::StatusOr<std::vector<ParamValue>> ValuesFromJson(const nlohmann::json& json) {
  return ArrayFromJson<ParamValue>(json, ParamFromJson);
}

absl::StatusOr<Condition> ConditionFromJson(const nlohmann::json& json) {
  Condition condition;
  JsonReader reader(json, "");
  reader.Required("name", condition.name);
  reader.RequiredWith("values", condition.values, ValuesFromJson);
  HPO_RETURN_IF_ERROR(reader.status());
  return condition;
}

absl::StatusOr<std::vector<Condition>> ConditionsFromJson(const nlohmann::json& json) {
  return ArrayFromJson<Condition>(json, ConditionFromJson);
}

Domain ReadFloat(JsonReader& reader) {
  FloatDomain domain;
  double step = 0.0;
  reader.Required("low", domain.low);
  reader.Required("high", domain.high);
  reader.Optional("step", step);
  reader.Optional("log", domain.log);
  if (step != 0.0) domain.step = step;
  return domain;
}

Domain ReadInt(JsonReader& reader) {
  IntDomain domain;
  reader.Required("low", domain.low);
  reader.Required("high", domain.high);
  reader.Optional("step", domain.step);
  reader.Optional("log", domain.log);
  return domain;
}

Domain ReadChoices(JsonReader& reader) {
  CategoricalDomain domain;
  reader.RequiredWith("choices", domain.choices, ValuesFromJson);
  return domain;
}

absl::StatusOr<Parameter> ParameterFromJson(const nlohmann::json& json) {
  Parameter parameter;
  JsonReader reader(json, "");
  reader.Required("name", parameter.name);
  reader.OptionalWith("when", parameter.when, ConditionsFromJson);
  reader.Optional("model", parameter.modelled);
  reader.OptionalWith("default", parameter.default_value, ParamFromJson);
  HPO_RETURN_IF_ERROR(reader.status());
  HPO_ASSIGN_OR_RETURN(parameter.domain, DomainFromJson(json));
  return parameter;
}

absl::StatusOr<Narrowing> NarrowingFromJson(const nlohmann::json& json) {
  Narrowing narrowing;
  JsonReader reader(json, "");
  reader.Required("name", narrowing.name);
  reader.RequiredWith("when", narrowing.when, ConditionsFromJson);
  HPO_RETURN_IF_ERROR(reader.status());
  HPO_ASSIGN_OR_RETURN(narrowing.domain, DomainFromJson(json));
  return narrowing;
}

absl::StatusOr<std::map<std::string, ParamMap>> FactsFromJson(const nlohmann::json& json) {
  return MapFromJson(json, ParamsFromJson);
}

}  // namespace

nlohmann::json DomainToJson(const Domain& domain) {
  return std::visit([](const auto& held) { return ToJson(held); }, domain);
}

nlohmann::json SpaceToJson(const SearchSpace& space) {
  nlohmann::json parameters = nlohmann::json::array();
  for (const Parameter& parameter : space.parameters) {
    nlohmann::json json = DomainToJson(parameter.domain);
    json["name"] = parameter.name;
    json["when"] = ConditionsToJson(parameter.when);
    json["model"] = parameter.modelled;
    json["default"] = parameter.default_value.has_value() ? ParamToJson(*parameter.default_value)
                                                          : nlohmann::json();
    parameters.push_back(std::move(json));
  }
  nlohmann::json constraints = nlohmann::json::array();
  for (const Narrowing& narrowing : space.narrowings) {
    nlohmann::json json = DomainToJson(narrowing.domain);
    json["name"] = narrowing.name;
    json["when"] = ConditionsToJson(narrowing.when);
    constraints.push_back(std::move(json));
  }
  nlohmann::json facts = nlohmann::json::object();
  for (const auto& [model, members] : space.model_facts) facts[model] = ParamsToJson(members);
  return {{"parameters", parameters}, {"constraints", constraints}, {"model_facts", facts}};
}

absl::StatusOr<Domain> DomainFromJson(const nlohmann::json& json) {
  constexpr NamedForm<Domain> kKinds[] = {
      {"float", ReadFloat}, {"int", ReadInt}, {"choices", ReadChoices}};
  return FormFromJson(json, "kind", kKinds);
}

absl::StatusOr<SearchSpace> SpaceFromJson(const nlohmann::json& json) {
  SearchSpace space;
  JsonReader reader(json, "");
  reader.RequiredWith("parameters", space.parameters, [](const nlohmann::json& member) {
    return ArrayFromJson<Parameter>(member, ParameterFromJson);
  });
  reader.OptionalWith("constraints", space.narrowings, [](const nlohmann::json& member) {
    return ArrayFromJson<Narrowing>(member, NarrowingFromJson);
  });
  reader.OptionalWith("model_facts", space.model_facts, FactsFromJson);
  HPO_RETURN_IF_ERROR(reader.status());
  return space;
}

}  // namespace hpo
