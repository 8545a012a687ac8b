#include "sampler/tpe_sampler.h"

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
// Memory's ratio counts squared: a poor trial still teaches quality, one out of memory is lost.
// On spaces whose optimum lies on the limit this lowers the out-of-memory trials and the regret.
constexpr double kMemoryExponent = 2.0;

struct Evidence {
  std::vector<JudgedTrial> quality;  // trials that say how good a configuration is
  TrialSplit memory;                 // below: ran within the capacity; above: could not
  int64_t num_finished = 0;          // of `quality`
};

// Pruned for a reason that says nothing of quality.
bool EndedByMemory(const HistoryTrial& trial) {
  return trial.prune_reason.has_value() && *trial.prune_reason != PruneReason::kPruner;
}

Evidence Judge(const History& history, Bytes capacity, MemoryPolicy policy) {
  Evidence evidence;
  for (const auto& [number, trial] : history.trials()) {
    const double violation = MemoryViolation(trial, capacity, policy);
    const bool finished =
        trial.state == TrialState::kCompleted || trial.state == TrialState::kPruned;
    if (violation > 0.0) {
      evidence.memory.above.push_back(&trial);
      continue;
    }
    if (EndedByMemory(trial)) continue;
    if (finished) {
      evidence.memory.below.push_back(&trial);
      ++evidence.num_finished;
    }
    if (finished || trial.state == TrialState::kRunning) {
      evidence.quality.push_back({&trial, violation});
    }
  }
  return evidence;
}

// The acquisition. NaN is never best.
double Score(const DensityRatio& quality, const DensityRatio& memory, const ParamMap& params) {
  const double score = quality.LogRelative(params) + kMemoryExponent * memory.LogRelative(params);
  return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

// Candidates from both sought densities until enough of them fit.
void DrawCandidates(const DensityRatio& quality, const DensityRatio& memory, bool learned, Rng& rng,
                    CandidatePool& pool) {
  for (int round = 0; round < kMaxRounds && pool.fitting().size() < kNumCandidates; ++round) {
    std::vector<ParamMap> drawn;
    for (size_t i = 0; i < kNumCandidates; ++i) {
      if (auto params = quality.Draw(rng); params.has_value()) drawn.push_back(*std::move(params));
      if (!learned) continue;
      if (auto params = memory.Draw(rng); params.has_value()) drawn.push_back(*std::move(params));
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
  HPO_ASSIGN_OR_RETURN(
      const DensityRatio quality,
      DensityRatio::Fit(quality_space,
                        SplitTrials(evidence.quality, NumBelow(evidence.num_finished)),
                        Dependence::kJoint));
  HPO_ASSIGN_OR_RETURN(const DensityRatio memory,
                       DensityRatio::Fit(memory_space, evidence.memory, Dependence::kIndependent));

  Rng rng = StreamFor(spec_.seed, context.number, StreamPurpose::kCandidates);
  CandidatePool pool(context);
  DrawCandidates(quality, memory, learned, rng, pool);
  if (pool.fitting().empty()) return SuggestAtRandom(context, history_, spec_);
  const Candidate* best = nullptr;
  double best_score = 0.0;
  for (const Candidate& candidate : pool.fitting()) {
    const double score = Score(quality, memory, candidate.params);
    if (best != nullptr && !(score > best_score)) continue;
    best = &candidate;
    best_score = score;
  }
  return Suggestion{.params = best->params,
                    .fit = best->fit,
                    .sampler = "tpe",
                    .history_sequence = history_.sequence(),
                    .score = best_score};
}

}  // namespace hpo
