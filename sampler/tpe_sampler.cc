#include "sampler/tpe_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/status.h"
#include "sampler/candidate_pool.h"
#include "sampler/density_ratio.h"
#include "sampler/random_sampler.h"
#include "sampler/random_stream.h"

namespace hpo {
namespace {

constexpr size_t kNumCandidates = 24;
// Rounds of candidates before random search for one that fits takes over.
constexpr int kMaxRounds = 8;
// The ratios of memory and of failures count squared: a poor trial still teaches quality, one that
// did not run is lost. On spaces whose optimum lies on the limit of memory, and on those where most
// configurations fail, this lowers the lost trials and the regret.
constexpr double kLossExponent = 2.0;

struct Evidence {
  std::vector<JudgedTrial> quality;  // trials that say how good a configuration is
  TrialSplit memory;                 // below: ran within the capacity; above: could not
  TrialSplit failure;                // below: finished; above: failed
  int64_t num_finished = 0;          // of `quality`
};

// What the acquisition is made of.
struct Ratios {
  DensityRatio quality;
  DensityRatio memory;
  DensityRatio failure;
};

Evidence Judge(const History& history, Bytes capacity, MemoryPolicy policy) {
  Evidence evidence;
  for (const auto& [number, trial] : history.trials()) {
    const double violation = MemoryViolation(trial, capacity, policy);
    const bool finished = IsFinished(trial);
    if (violation > 0.0) {
      evidence.memory.above.push_back(&trial);
      continue;
    }
    if (EndedByMemory(trial)) continue;
    if (trial.state == TrialState::kFailed) evidence.failure.above.push_back(&trial);
    if (finished) {
      evidence.memory.below.push_back(&trial);
      evidence.failure.below.push_back(&trial);
      ++evidence.num_finished;
    }
    if (finished || trial.state == TrialState::kRunning) {
      evidence.quality.push_back({&trial, violation});
    }
  }
  // With nothing to avoid a ratio is 1 whatever its densities: they need not be fitted.
  for (TrialSplit* split : {&evidence.memory, &evidence.failure}) {
    if (split->above.empty()) split->below.clear();
  }
  return evidence;
}

absl::StatusOr<Ratios> FitRatios(const Evidence& evidence, const ModelSpace& quality_space,
                                 const ModelSpace& memory_space) {
  HPO_ASSIGN_OR_RETURN(
      DensityRatio quality,
      DensityRatio::Fit(quality_space,
                        SplitTrials(evidence.quality, NumBelow(evidence.num_finished)),
                        Dependence::kBoth));
  HPO_ASSIGN_OR_RETURN(DensityRatio memory,
                       DensityRatio::Fit(memory_space, evidence.memory, Dependence::kIndependent));
  HPO_ASSIGN_OR_RETURN(DensityRatio failure,
                       DensityRatio::Fit(memory_space, evidence.failure, Dependence::kJoint));
  return Ratios{std::move(quality), std::move(memory), std::move(failure)};
}

// The acquisition. NaN is never best.
double Score(const Ratios& ratios, const ParamMap& params) {
  const double lost = ratios.memory.LogRelative(params) + ratios.failure.LogRelative(params);
  const double score = ratios.quality.LogRelative(params) + kLossExponent * lost;
  return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

// The candidate of the best score among those that no trial has had, where there is one; the first
// of equals.
std::pair<const Candidate*, double> BestOf(const std::vector<Candidate>& candidates,
                                           const Ratios& ratios, const History& history) {
  std::vector<std::pair<const Candidate*, double>> scored;
  for (const Candidate& candidate : candidates) {
    scored.emplace_back(&candidate, Score(ratios, candidate.params));
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const auto is_new = [&history](const auto& entry) {
    return std::none_of(
        history.trials().begin(), history.trials().end(),
        [&entry](const auto& had) { return had.second.params == entry.first->params; });
  };
  const auto best_new = std::find_if(scored.begin(), scored.end(), is_new);
  return best_new == scored.end() ? scored.front() : *best_new;
}

// Candidates from both sought densities until enough of them fit.
void DrawCandidates(const Ratios& ratios, bool learned, Rng& rng, CandidatePool& pool) {
  for (int round = 0; round < kMaxRounds && pool.fitting().size() < kNumCandidates; ++round) {
    std::vector<ParamMap> drawn;
    for (size_t i = 0; i < kNumCandidates; ++i) {
      if (auto params = ratios.quality.Draw(rng); params.has_value())
        drawn.push_back(*std::move(params));
      if (!learned) continue;
      if (auto params = ratios.memory.Draw(rng); params.has_value())
        drawn.push_back(*std::move(params));
    }
    pool.Add(std::move(drawn));
  }
}

}  // namespace

absl::StatusOr<Suggestion> TpeSampler::Suggest(const AskContext& context) const {
  if (history_.num_finished() < spec_.startup_trials) {
    return SuggestAtRandom(context, history_, spec_);
  }
  const Evidence evidence = Judge(history_, context.capacity, policy_);
  const bool learned = !evidence.memory.above.empty();
  const ModelSpace quality_space(context.space, ModelView::kQuality);
  const ModelSpace memory_space(context.space, ModelView::kMemory);
  HPO_ASSIGN_OR_RETURN(const Ratios ratios, FitRatios(evidence, quality_space, memory_space));

  Rng rng = StreamFor(spec_.seed, context.number, StreamPurpose::kCandidates);
  CandidatePool pool(context);
  DrawCandidates(ratios, learned, rng, pool);
  if (pool.fitting().empty()) return SuggestAtRandom(context, history_, spec_);
  const auto [best, score] = BestOf(pool.fitting(), ratios, history_);
  return Suggestion{.params = best->params,
                    .fit = best->fit,
                    .sampler = "tpe",
                    .history_sequence = history_.sequence(),
                    .score = score};
}

}  // namespace hpo
