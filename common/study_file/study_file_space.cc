// Tested by tests/common/study_file/study_file_test.cc.
#include "common/study_file/study_file_space.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/space/search_space_validation.h"
#include "common/space/value_set.h"
#include "common/study/joined_errors.h"
#include "common/study/model_catalog.h"

namespace hpo {
namespace {

absl::Status CheckCount(const YamlValue& place, size_t count, const Limit& limit) {
  if (count <= static_cast<size_t>(limit.most)) return absl::OkStatus();
  return place.Error(
      absl::StrCat("expected at most ", limit.most, " ", limit.what, ", got ", count));
}

template <typename T>
absl::StatusOr<std::pair<T, T>> ReadRange(const YamlValue& value,
                                          absl::StatusOr<T> (*read)(const YamlValue&)) {
  HPO_ASSIGN_OR_RETURN(const std::vector<YamlValue> bounds, ReadList(value));
  if (bounds.size() != 2) {
    return value.Error(absl::StrCat("expected [low, high], got ", bounds.size(), " values"));
  }
  HPO_ASSIGN_OR_RETURN(const T low, read(bounds[0]));
  HPO_ASSIGN_OR_RETURN(const T high, read(bounds[1]));
  return std::make_pair(low, high);
}

// The values of a list. In one of numbers alone, integers among real numbers become real.
absl::StatusOr<std::vector<ParamValue>> ReadChoices(const YamlValue& value) {
  HPO_ASSIGN_OR_RETURN(const std::vector<YamlValue> elements, ReadList(value));
  HPO_RETURN_IF_ERROR(CheckCount(value, elements.size(), kChoiceLimit));
  std::vector<ParamValue> choices;
  for (const YamlValue& element : elements) {
    HPO_ASSIGN_OR_RETURN(ParamValue choice, ReadParam(element));
    choices.push_back(std::move(choice));
  }
  const auto is_real = [](const ParamValue& choice) {
    return std::holds_alternative<double>(choice);
  };
  const auto is_number = [](const ParamValue& choice) { return AsNumber(choice).has_value(); };
  if (std::any_of(choices.begin(), choices.end(), is_real) &&
      std::all_of(choices.begin(), choices.end(), is_number)) {
    for (ParamValue& choice : choices) choice = Coerce(FloatDomain(), choice);
  }
  return choices;
}

absl::StatusOr<Domain> ReadInts(YamlMap& map, const YamlValue& range, const Domain* outer) {
  IntDomain domain;
  if (const auto* whole = outer == nullptr ? nullptr : std::get_if<IntDomain>(outer)) {
    domain = *whole;
  }
  HPO_ASSIGN_OR_RETURN(std::tie(domain.low, domain.high), ReadRange<int64_t>(range, ReadInt));
  map.Read("step", domain.step, ReadInt);
  map.Read("log", domain.log, ReadBool);
  return Domain(domain);
}

absl::StatusOr<Domain> ReadFloats(YamlMap& map, const YamlValue& range, const Domain* outer) {
  FloatDomain domain;
  if (const auto* whole = outer == nullptr ? nullptr : std::get_if<FloatDomain>(outer)) {
    domain = *whole;
  }
  HPO_ASSIGN_OR_RETURN(std::tie(domain.low, domain.high), ReadRange<double>(range, ReadDouble));
  map.Read("step", domain.step, ReadDouble);
  map.Read("log", domain.log, ReadBool);
  return Domain(domain);
}

// Reads `int`, `float` or `choices`, of which `map` (the mapping `value`) must hold one. `outer` is
// the domain that it narrows, or null: step and log that are left out are taken from there.
absl::StatusOr<Domain> ReadDomain(YamlMap& map, const YamlValue& value, const Domain* outer) {
  const std::optional<YamlValue> ints = map.Take("int");
  const std::optional<YamlValue> floats = map.Take("float");
  const std::optional<YamlValue> choices = map.Take("choices");
  const int given = int{ints.has_value()} + int{floats.has_value()} + int{choices.has_value()};
  if (given != 1) {
    // An unknown key or a value that is no mapping says more than this.
    map.Take("step");
    map.Take("log");
    HPO_RETURN_IF_ERROR(map.Finish());
    return value.Error(absl::StrCat("expected one of int, float and choices, got ",
                                    given == 0 ? "none" : "several"));
  }
  if (ints.has_value()) return ReadInts(map, *ints, outer);
  if (floats.has_value()) return ReadFloats(map, *floats, outer);
  CategoricalDomain domain;
  HPO_ASSIGN_OR_RETURN(domain.choices, ReadChoices(*choices));
  if (outer != nullptr) {
    for (ParamValue& choice : domain.choices) choice = Coerce(*outer, choice);
  }
  return Domain(domain);
}

// The choice of model.name that is `value` in another spelling (FullModelName); else `value`.
ParamValue ModelChoice(const Domain& models, const ParamValue& value) {
  const auto* const domain = std::get_if<CategoricalDomain>(&models);
  if (domain == nullptr) return value;
  const std::string full = FullModelName(FormatParam(value));
  const auto means = [&full](const ParamValue& choice) {
    return FullModelName(FormatParam(choice)) == full;
  };
  const auto found = std::find_if(domain->choices.begin(), domain->choices.end(), means);
  return found == domain->choices.end() ? value : *found;
}

class SpaceReader {
 public:
  absl::Status ReadParameters(const YamlValue& value);
  absl::Status ReadNarrowing(const YamlValue& value);
  // Orders the parameters and checks everything.
  absl::StatusOr<SearchSpace> Finish() &&;

 private:
  absl::StatusOr<Parameter> ReadParameter(const std::string& name, const YamlValue& value);
  absl::StatusOr<std::vector<Condition>> ReadConditions(const YamlValue& value) const;
  absl::StatusOr<std::vector<ParamValue>> ReadConditionValues(const std::string& name,
                                                              const YamlValue& value) const;
  // `allowed`: the values of the parameter `name`, where it is one.
  absl::Status CheckConditionValue(const std::string& name, const std::optional<ValueSet>& allowed,
                                   const YamlValue& place, ParamValue& value) const;
  absl::Status SortParents();
  std::vector<std::string> KnownNames() const;

  SearchSpace space_;
  std::map<std::string, YamlValue> places_;      // of parameters
  std::map<std::string, YamlValue> conditions_;  // `when` of parameters, read after all of them
  std::vector<YamlValue> narrowing_places_;
};

absl::Status SpaceReader::ReadParameters(const YamlValue& value) {
  YamlMap map(value);
  HPO_RETURN_IF_ERROR(CheckCount(value, value.node.size(), kParameterLimit));
  absl::Status errors;
  for (const auto& [name, entry] : map.TakeAll()) {
    absl::StatusOr<Parameter> parameter = ReadParameter(name, entry);
    errors = Both(errors, parameter.status());
    if (!parameter.ok()) continue;
    space_.parameters.push_back(*std::move(parameter));
    places_.emplace(name, entry);
  }
  // A condition on a parameter that could not be read would be one on none.
  HPO_RETURN_IF_ERROR(Both(errors, map.Finish()));
  for (Parameter& parameter : space_.parameters) {
    const auto when = conditions_.find(parameter.name);
    if (when == conditions_.end()) continue;
    absl::StatusOr<std::vector<Condition>> conditions = ReadConditions(when->second);
    errors = Both(errors, conditions.status());
    if (conditions.ok()) parameter.when = *std::move(conditions);
  }
  return errors;
}

absl::StatusOr<Parameter> SpaceReader::ReadParameter(const std::string& name,
                                                     const YamlValue& value) {
  Parameter parameter;
  parameter.name = name;
  YamlMap map(value);
  map.Read("model", parameter.modelled, ReadBool);
  map.Read("default", parameter.default_value, ReadParam);
  if (const std::optional<YamlValue> when = map.Take("when")) conditions_.emplace(name, *when);
  HPO_ASSIGN_OR_RETURN(parameter.domain, ReadDomain(map, value, nullptr));
  HPO_RETURN_IF_ERROR(map.Finish());
  if (const absl::Status valid = ValidateDomain(parameter.domain); !valid.ok()) {
    return value.Error(valid.message());
  }
  if (parameter.default_value.has_value()) {
    parameter.default_value = Coerce(parameter.domain, *parameter.default_value);
  }
  return parameter;
}

std::vector<std::string> SpaceReader::KnownNames() const {
  std::vector<std::string> names = {kModelClassFact, kModelFamilyFact};
  for (const Parameter& parameter : space_.parameters) names.push_back(parameter.name);
  return names;
}

absl::StatusOr<std::vector<Condition>> SpaceReader::ReadConditions(const YamlValue& value) const {
  YamlMap map(value);
  std::vector<Condition> conditions;
  for (const auto& [name, entry] : map.TakeAll()) {
    const std::vector<std::string> known = KnownNames();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return entry.Error(absl::StrCat("unknown parameter '", name, "'", Suggest(name, known)));
    }
    HPO_ASSIGN_OR_RETURN(std::vector<ParamValue> values, ReadConditionValues(name, entry));
    conditions.push_back(Condition{name, std::move(values)});
  }
  HPO_RETURN_IF_ERROR(map.Finish());
  if (conditions.empty()) return value.Error("expected at least one condition, got none");
  return conditions;
}

// One value, or a list of them.
absl::StatusOr<std::vector<ParamValue>> SpaceReader::ReadConditionValues(
    const std::string& name, const YamlValue& value) const {
  std::vector<YamlValue> elements = {value};
  if (value.node.IsSequence()) {
    HPO_ASSIGN_OR_RETURN(elements, ReadList(value));
  }
  const Parameter* const parent = space_.Find(name);  // null: a fact of the model
  std::optional<ValueSet> allowed;
  if (parent != nullptr) allowed.emplace(parent->domain);
  std::vector<ParamValue> values;
  for (const YamlValue& element : elements) {
    HPO_ASSIGN_OR_RETURN(ParamValue param, ReadParam(element));
    HPO_RETURN_IF_ERROR(CheckConditionValue(name, allowed, element, param));
    values.push_back(std::move(param));
  }
  return values;
}

// Gives `value` the type of what it is compared with, and checks that it can occur.
absl::Status SpaceReader::CheckConditionValue(const std::string& name,
                                              const std::optional<ValueSet>& allowed,
                                              const YamlValue& place, ParamValue& value) const {
  if (name == kModelFamilyFact) return absl::OkStatus();
  if (name == kModelClassFact) {
    if (FormatParam(value) == "heavy" || FormatParam(value) == "base") return absl::OkStatus();
    return place.Error(absl::StrCat("expected heavy or base, got '", FormatParam(value), "'"));
  }
  const Domain& domain = space_.Find(name)->domain;
  value = Coerce(domain, value);
  if (name == kModelNameParameter && !allowed->Has(value)) value = ModelChoice(domain, value);
  if (allowed->Has(value)) return absl::OkStatus();
  return place.Error(absl::StrCat("expected a value in ", FormatDomain(domain), ", got '",
                                  FormatParam(value), "'"));
}

absl::Status SpaceReader::ReadNarrowing(const YamlValue& value) {
  YamlMap map(value);
  const std::optional<YamlValue> when = map.Require("when");
  const std::optional<YamlValue> set = map.Require("set");
  HPO_RETURN_IF_ERROR(map.Finish());
  HPO_ASSIGN_OR_RETURN(const std::vector<Condition> conditions, ReadConditions(*when));
  YamlMap narrowed(*set);
  for (const auto& [name, entry] : narrowed.TakeAll()) {
    const Parameter* parameter = space_.Find(name);
    if (parameter == nullptr) {
      std::vector<std::string> names = KnownNames();
      names.erase(names.begin(), names.begin() + 2);
      return entry.Error(absl::StrCat("unknown parameter '", name, "'", Suggest(name, names)));
    }
    YamlMap part(entry);
    HPO_ASSIGN_OR_RETURN(Domain domain, ReadDomain(part, entry, &parameter->domain));
    HPO_RETURN_IF_ERROR(part.Finish());
    space_.narrowings.push_back(Narrowing{conditions, name, std::move(domain)});
    narrowing_places_.push_back(entry);
  }
  return narrowed.Finish();
}

// Stable: a parameter is put off only as long as one that it depends on is.
absl::Status SpaceReader::SortParents() {
  std::map<std::string, std::set<std::string>> parents;
  const auto depend = [&](const std::string& child, const std::vector<Condition>& conditions) {
    for (const Condition& condition : conditions) {
      const bool fact = condition.name == kModelClassFact || condition.name == kModelFamilyFact;
      const std::string parent = fact ? kModelNameParameter : condition.name;
      if (space_.Find(parent) != nullptr) parents[child].insert(parent);
    }
  };
  for (const Parameter& parameter : space_.parameters) depend(parameter.name, parameter.when);
  for (const Narrowing& narrowing : space_.narrowings) depend(narrowing.name, narrowing.when);

  std::vector<Parameter> sorted;
  std::vector<Parameter> waiting = std::move(space_.parameters);
  std::set<std::string> placed;
  while (!waiting.empty()) {
    const auto next = std::find_if(waiting.begin(), waiting.end(), [&](const Parameter& candidate) {
      const std::set<std::string>& needed = parents[candidate.name];
      return std::includes(placed.begin(), placed.end(), needed.begin(), needed.end());
    });
    if (next == waiting.end()) {
      return places_.at(waiting.front().name)
          .Error("expected conditions without a circle, got one that comes back to this parameter");
    }
    placed.insert(next->name);
    sorted.push_back(std::move(*next));
    waiting.erase(next);
  }
  space_.parameters = std::move(sorted);
  return absl::OkStatus();
}

absl::StatusOr<SearchSpace> SpaceReader::Finish() && {
  HPO_RETURN_IF_ERROR(SortParents());
  absl::Status errors;
  for (size_t i = 0; i < space_.parameters.size(); ++i) {
    const YamlValue& place = places_.at(space_.parameters[i].name);
    errors = Both(errors, place.Locate(ValidateParameter(space_, i)));
  }
  HPO_RETURN_IF_ERROR(errors);
  for (size_t i = 0; i < space_.narrowings.size(); ++i) {
    errors =
        Both(errors, narrowing_places_[i].Locate(ValidateNarrowing(space_, space_.narrowings[i])));
  }
  HPO_RETURN_IF_ERROR(errors);
  return std::move(space_);
}

}  // namespace

absl::StatusOr<SearchSpace> ReadSpace(const YamlValue& parameters,
                                      const std::vector<YamlValue>& narrowings) {
  SpaceReader reader;
  HPO_RETURN_IF_ERROR(reader.ReadParameters(parameters));
  absl::Status errors;
  for (const YamlValue& element : narrowings) errors = Both(errors, reader.ReadNarrowing(element));
  HPO_RETURN_IF_ERROR(errors);
  return std::move(reader).Finish();
}

}  // namespace hpo
