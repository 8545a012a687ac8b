// Reads the studies of tests/golden/importance.json.
#pragma once

#include <string>
#include <vector>

#include "common/interop/importance/importance.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"

namespace hpo {

inline Domain DomainOf(const nlohmann::json& json) {
  if (json.contains("choices")) {
    CategoricalDomain domain;
    for (const auto& choice : json["choices"]) {
      domain.choices.push_back(ParamFromJson(choice).value());
    }
    return domain;
  }
  const bool log = json["log"];
  if (json.contains("int")) {
    return IntDomain{
        .low = json["int"][0], .high = json["int"][1], .step = json["step"], .log = log};
  }
  FloatDomain domain{.low = json["float"][0], .high = json["float"][1], .log = log};
  if (!json["step"].is_null()) domain.step = json["step"].get<double>();
  return domain;
}

inline SearchSpace SpaceOf(const nlohmann::json& json) {
  SearchSpace space;
  for (const auto& [name, domain] : json.items()) {
    space.parameters.push_back({.name = name, .domain = DomainOf(domain)});
  }
  return space;
}

inline std::vector<AssessedTrial> TrialsOf(const nlohmann::json& study) {
  std::vector<AssessedTrial> trials;
  for (const auto& trial : study["trials"]) {
    trials.push_back({ParamsFromJson(trial[0]).value(), trial[1]});
  }
  return trials;
}

}  // namespace hpo
