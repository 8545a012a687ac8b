#include "sampler/simple/random_sampler.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "sampler/space/candidate_pool.h"
#include "sampler/space/random_configuration.h"
#include "sampler/space/random_stream.h"

namespace hpo::sampler {
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

// What is learned of memory from a few trials may come to refuse all but what was seen to run; a
// study that proposed nothing then would never learn better. So: trials that ran, with one
// parameter drawn again, or as they were. nullopt where none of some 200 of these fits either.
std::optional<Candidate> DrawNearFinished(const AskContext& context, const History& history,
                                          Rng& rng) {
  constexpr int kRounds[] = {32, 64, 128};
  std::vector<const ParamMap*> finished;
  for (const auto& [number, trial] : history.trials()) {
    if (IsFinished(trial) && !trial.params.empty()) finished.push_back(&trial.params);
  }
  if (finished.empty()) return std::nullopt;
  const auto draw = [&] {
    ParamMap kept = *finished[rng.Below(finished.size())];
    const uint64_t anew = rng.Below(kept.size() + 1);  // the last for none of them
    if (anew < kept.size()) kept.erase(std::next(kept.begin(), static_cast<ptrdiff_t>(anew)));
    return DrawConfiguration(context.space, kept, rng);
  };
  CandidatePool pool(context);
  if (auto found = DrawUntilNew(kRounds, history, draw, rng, pool); found.has_value()) return found;
  if (pool.fitting().empty()) return std::nullopt;
  return pool.fitting().front();
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
  std::string reason(why);
  absl::StatusOr<Candidate> drawn =
      DrawFitting(context, DueDefaults(context.space, history, spec), rng);
  if (!drawn.ok()) {
    std::optional<Candidate> near = DrawNearFinished(context, history, rng);
    if (!near.has_value()) return drawn.status();
    drawn = *std::move(near);
    reason = "near a trial that ran, as no independent draw fits";
  }
  return Suggestion{.params = std::move(drawn->params),
                    .fit = drawn->fit,
                    .sampler = "random",
                    .history_sequence = history.sequence(),
                    .score = std::nullopt,
                    .reason = std::move(reason)};
}

}  // namespace hpo::sampler
