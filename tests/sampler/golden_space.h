// Search spaces of golden files that were computed with Optuna.
#pragma once

#include <cmath>
#include <string>

#include "common/space/search_space.h"
#include "nlohmann/json.hpp"

namespace hpo::sampler {

// The golden file's description of a parameter.
inline Domain DomainOf(const nlohmann::json& json) {
  if (json.contains("choices")) {
    CategoricalDomain domain;
    for (const std::string choice : json["choices"]) domain.choices.push_back(choice);
    return domain;
  }
  const bool log = json.value("log", false);
  if (json["low"].is_number_integer()) {
    return IntDomain{json["low"], json["high"], json.value("step", int64_t{1}), log};
  }
  FloatDomain domain{json["low"], json["high"], std::nullopt, log};
  if (json.contains("step")) domain.step = json["step"].get<double>();
  return domain;
}

// Our positions are in [0, 1]; Optuna's densities are over the (log of the) value.
inline double LogUnit(const Domain& domain) {
  const auto* real = std::get_if<FloatDomain>(&domain);
  if (real == nullptr || real->step.has_value()) return 0.0;
  return std::log(real->log ? std::log(real->high / real->low) : real->high - real->low);
}

}  // namespace hpo::sampler
