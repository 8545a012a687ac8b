#include "sampler/random_sampler.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "sampler/candidate_pool.h"
#include "sampler/random_stream.h"

namespace hpo {
namespace {

ParamMap DefaultsOf(const SearchSpace& space) {
  ParamMap defaults;
  for (const Parameter& parameter : space.parameters) {
    if (parameter.default_value.has_value()) {
      defaults.emplace(parameter.name, *parameter.default_value);
    }
  }
  return defaults;
}

// Whether `params` holds defaults and nothing else where there is a default.
bool TakesDefaults(const ParamMap& params, const ParamMap& defaults) {
  bool any = false;
  for (const auto& [name, value] : defaults) {
    const auto found = params.find(name);
    if (found == params.end()) continue;
    if (found->second != value) return false;
    any = true;
  }
  return any;
}

}  // namespace

ParamMap DueDefaults(const SearchSpace& space, const History& history, const SamplerSpec& spec) {
  if (history.num_finished() >= std::max<int64_t>(spec.startup_trials, 1)) return {};
  ParamMap defaults = DefaultsOf(space);
  for (const auto& [number, trial] : history.trials()) {
    if (TakesDefaults(trial.params, defaults)) return {};
  }
  return defaults;
}

absl::StatusOr<Suggestion> SuggestAtRandom(const AskContext& context, const History& history,
                                           const SamplerSpec& spec, absl::string_view why) {
  Rng rng = StreamFor(spec.seed, context.number, StreamPurpose::kRandomConfiguration);
  HPO_ASSIGN_OR_RETURN(Candidate drawn,
                       DrawFitting(context, DueDefaults(context.space, history, spec), rng));
  return Suggestion{.params = std::move(drawn.params),
                    .fit = drawn.fit,
                    .sampler = "random",
                    .history_sequence = history.sequence(),
                    .score = std::nullopt,
                    .reason = std::string(why)};
}

}  // namespace hpo
