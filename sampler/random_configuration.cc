#include "sampler/random_configuration.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "sampler/numeric_scale.h"

namespace hpo {
namespace {

// How often a draw whose constraints contradict each other is begun anew.
constexpr int kMaxAttempts = 64;

absl::StatusOr<ParamMap> DrawOnce(const SearchSpace& space, const ParamMap& preset, Rng& rng) {
  ParamMap params;
  for (const Parameter& parameter : space.parameters) {
    if (!Holds(space, parameter.when, params)) continue;
    const std::optional<Domain> allowed = AllowedDomain(space, parameter, params);
    if (!allowed.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("no configuration found: the constraints leave ", parameter.name,
                       " no value, e.g. with ", FormatParams(params)));
    }
    const auto given = preset.find(parameter.name);
    const bool keep = given != preset.end() && Contains(*allowed, given->second);
    params.emplace(parameter.name, keep ? given->second : DrawUniform(*allowed, rng));
  }
  return params;
}

}  // namespace

absl::StatusOr<ParamMap> DrawConfiguration(const SearchSpace& space, const ParamMap& preset,
                                           Rng& rng) {
  absl::StatusOr<ParamMap> drawn = DrawOnce(space, preset, rng);
  for (int i = 1; i < kMaxAttempts && !drawn.ok(); ++i) drawn = DrawOnce(space, preset, rng);
  return drawn;
}

}  // namespace hpo
