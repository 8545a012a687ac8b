// The fields of search spaces, and how values of parameters stand in JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/fields/json_fields.h"
#include "common/space/search_space.h"

namespace hpo {

template <>
struct JsonForm<ParamValue> {
  static nlohmann::json Write(const ParamValue& value) { return ParamToJson(value); }
  static absl::StatusOr<ParamValue> Read(const nlohmann::json& json) { return ParamFromJson(json); }
};
// A value that is null stands as {"value": null}: null alone says that there is none.
template <>
struct JsonForm<std::optional<ParamValue>> {
  static nlohmann::json Write(const std::optional<ParamValue>& value) {
    if (!value.has_value()) return nullptr;
    if (std::holds_alternative<Null>(*value)) return {{"value", nullptr}};
    return ParamToJson(*value);
  }
  static absl::StatusOr<std::optional<ParamValue>> Read(const nlohmann::json& json) {
    if (json.is_null()) return std::nullopt;
    return ParamFromJson(json.is_object() && json.contains("value") ? json["value"] : json);
  }
};
template <>
struct JsonForm<ParamMap> {
  static nlohmann::json Write(const ParamMap& params) { return ParamsToJson(params); }
  static absl::StatusOr<ParamMap> Read(const nlohmann::json& json) { return ParamsFromJson(json); }
};

void VisitFields(Is<FloatDomain> auto& domain, auto visit) {
  visit({"low"}, domain.low);
  visit({"high"}, domain.high);
  visit({"step", kAlways}, domain.step);
  visit({"log", kAlways}, domain.log);
}

void VisitFields(Is<IntDomain> auto& domain, auto visit) {
  visit({"low"}, domain.low);
  visit({"high"}, domain.high);
  visit({"step", kAlways}, domain.step);
  visit({"log", kAlways}, domain.log);
}

void VisitFields(Is<CategoricalDomain> auto& domain, auto visit) {
  visit({"choices"}, domain.choices);
}

void VisitFields(Is<Condition> auto& condition, auto visit) {
  visit({"name"}, condition.name);
  visit({"values"}, condition.values);
}

// Without the domain, whose fields stand among these.
void VisitFields(Is<Parameter> auto& parameter, auto visit) {
  visit({"name"}, parameter.name);
  visit({"when", kAlways}, parameter.when);
  visit({.key = "model", .presence = kAlways, .wire = "modelled"}, parameter.modelled);
  visit({.key = "default", .presence = kAlways, .wire = "default_value"}, parameter.default_value);
}

// As a parameter's.
void VisitFields(Is<Narrowing> auto& narrowing, auto visit) {
  visit({"name"}, narrowing.name);
  visit({"when"}, narrowing.when);
}

}  // namespace hpo
