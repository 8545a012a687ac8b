#include "sampler/space/random_configuration.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "sampler/space/numeric_scale.h"

namespace hpo::sampler {
namespace {

// How often a draw whose constraints contradict each other is repeated.
constexpr int kMaxAttempts = 64;

}  // namespace

absl::StatusOr<ParamMap> ConfigurationAt(const SearchSpace& space, const ParamMap& preset,
                                         std::span<const double> point, Rng& rng) {
  ParamMap params;
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    const Parameter& parameter = space.parameters[i];
    if (!Holds(space, parameter.when, params)) continue;
    const std::optional<Domain> allowed = AllowedDomain(space, parameter, params);
    if (!allowed.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("no configuration found: the constraints leave ", parameter.name,
                       " no value, e.g. with ", FormatParams(params)));
    }
    const auto given = preset.find(parameter.name);
    if (given != preset.end() && Contains(*allowed, given->second)) {
      params.emplace(parameter.name, given->second);
    } else if (i < point.size() && !std::isnan(point[i])) {
      params.emplace(parameter.name, ValueAtPart(*allowed, point[i]));
    } else {
      params.emplace(parameter.name, DrawUniform(*allowed, rng));
    }
  }
  return params;
}

absl::StatusOr<ParamMap> DrawConfiguration(const SearchSpace& space, const ParamMap& preset,
                                           Rng& rng) {
  absl::StatusOr<ParamMap> drawn = ConfigurationAt(space, preset, {}, rng);
  for (int i = 1; i < kMaxAttempts && !drawn.ok(); ++i) {
    drawn = ConfigurationAt(space, preset, {}, rng);
  }
  return drawn;
}

}  // namespace hpo::sampler
