#include "common/space/search_space_json.h"

#include <utility>

#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/space/space_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

constexpr NamedForm<Domain> kKinds[] = {{"float", ReadForm<Domain, FloatDomain>},
                                        {"int", ReadForm<Domain, IntDomain>},
                                        {"choices", ReadForm<Domain, CategoricalDomain>}};

// The fields of a Parameter or a Narrowing and of its domain, in one object.
template <typename T>
nlohmann::json WithDomainToJson(const T& value) {
  nlohmann::json json = DomainToJson(value.domain);
  AddFields(value, json);
  return json;
}

template <typename T>
absl::StatusOr<T> WithDomainFromJson(const nlohmann::json& json) {
  HPO_ASSIGN_OR_RETURN(T value, FromJson<T>(json));
  HPO_ASSIGN_OR_RETURN(value.domain, DomainFromJson(json));
  return value;
}

template <typename T>
nlohmann::json ArrayToJson(const std::vector<T>& values) {
  nlohmann::json json = nlohmann::json::array();
  for (const T& value : values) json.push_back(WithDomainToJson(value));
  return json;
}

template <typename T>
absl::StatusOr<std::vector<T>> ArrayWithDomains(const nlohmann::json& json) {
  return ArrayFromJson<T>(json, WithDomainFromJson<T>);
}

absl::StatusOr<std::map<std::string, ParamMap>> FactsFromJson(const nlohmann::json& json) {
  return MapFromJson(json, ParamsFromJson);
}

}  // namespace

nlohmann::json DomainToJson(const Domain& domain) { return FormToJson(domain, "kind", kKinds); }

nlohmann::json SpaceToJson(const SearchSpace& space) {
  nlohmann::json facts = nlohmann::json::object();
  for (const auto& [model, members] : space.model_facts) facts[model] = ParamsToJson(members);
  return {{"parameters", ArrayToJson(space.parameters)},
          {"constraints", ArrayToJson(space.narrowings)},
          {"model_facts", facts}};
}

absl::StatusOr<Domain> DomainFromJson(const nlohmann::json& json) {
  return FormFromJson(json, "kind", kKinds);
}

absl::StatusOr<SearchSpace> SpaceFromJson(const nlohmann::json& json) {
  SearchSpace space;
  JsonReader reader(json, "");
  reader.RequiredWith("parameters", space.parameters, ArrayWithDomains<Parameter>);
  reader.OptionalWith("constraints", space.narrowings, ArrayWithDomains<Narrowing>);
  reader.OptionalWith("model_facts", space.model_facts, FactsFromJson);
  HPO_RETURN_IF_ERROR(reader.status());
  return space;
}

}  // namespace hpo
