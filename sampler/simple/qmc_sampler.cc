#include "sampler/simple/qmc_sampler.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sampler/simple/random_sampler.h"
#include "sampler/simple/sobol_sequence.h"
#include "sampler/space/candidate_pool.h"
#include "sampler/space/random_configuration.h"
#include "sampler/space/random_stream.h"

namespace hpo::sampler {
namespace {

// Sizes of the rounds of points, as DrawFitting's.
constexpr int kPointRounds[] = {1, 8, 64, 128, 256};
// Between the seeds of one trial's points.
constexpr uint64_t kNextSeed = 0xD1B54A32D192ED03;

// By parameter of the space; NaN where a coordinate is drawn.
std::vector<double> PointAt(const SearchSpace& space, uint64_t seed, uint32_t index) {
  std::vector<double> point;
  size_t dimension = 0;
  for (const Parameter& parameter : space.parameters) {
    const bool placed = parameter.modelled && dimension < kSobolDimensions;
    point.push_back(placed ? ScrambledSobol(seed, index, dimension++)
                           : std::numeric_limits<double>::quiet_NaN());
  }
  return point;
}

// The first point's configuration that fits and that no trial has had; else the first that fits,
// where there is one.
std::optional<Candidate> FirstFitting(const AskContext& context, const History& history,
                                      const ParamMap& preset, uint64_t seed) {
  Rng rng = StreamFor(seed, context.number, StreamPurpose::kRandomConfiguration);
  CandidatePool pool(context);
  const uint32_t index = static_cast<uint32_t>(context.number.value);
  const auto draw = [&] {
    const std::vector<double> point = PointAt(context.space, seed, index);
    seed += kNextSeed;
    return ConfigurationAt(context.space, preset, point, rng);
  };
  if (auto found = DrawUntilNew(kPointRounds, history, draw, rng, pool); found.has_value()) {
    return found;
  }
  if (pool.fitting().empty()) return std::nullopt;
  return pool.fitting().front();
}

}  // namespace

absl::StatusOr<Suggestion> SuggestQuasiRandom(const AskContext& context, const History& history,
                                              const SamplerSpec& spec) {
  const ParamMap due = DueDefaults(context.space, history, spec);
  std::optional<Candidate> found = FirstFitting(context, history, due, spec.seed);
  if (!found.has_value() && !due.empty()) {
    found = FirstFitting(context, history, {}, spec.seed);
  }
  if (!found.has_value()) {
    return SuggestAtRandom(context, history, spec,
                           "an independent draw, as no point of the sequence fits");
  }
  return Suggestion{.params = std::move(found->params),
                    .fit = found->fit,
                    .sampler = "sobol",
                    .history_sequence = history.sequence(),
                    .score = std::nullopt,
                    .reason = "the next point of a sequence that covers the space evenly"};
}

}  // namespace hpo::sampler
