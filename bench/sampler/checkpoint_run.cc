#include <algorithm>
#include <limits>

#include "bench/sampler/run.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

struct Found {
  double best = std::numeric_limits<double>::infinity();
  int64_t num_completed = 0;
  int64_t num_pruned = 0;
  int64_t num_failed = 0;
  int64_t num_out_of_memory = 0;
};

void Count(const sampler::HistoryTrial& trial, Bytes capacity, Found& found) {
  if (trial.state == TrialState::kFailed) ++found.num_failed;
  if (sampler::EndedByMemory(trial)) ++found.num_out_of_memory;
  if (trial.prune_reason == PruneReason::kPruner) ++found.num_pruned;
  if (trial.state != TrialState::kCompleted) return;
  ++found.num_completed;
  if (sampler::MemoryViolation(trial, capacity, MemoryPolicy::kPlan) > 0.0) return;
  found.best = std::min(found.best, trial.losses.front());
}

}  // namespace

nlohmann::json RunCheckpoints(const SamplerProblem& problem, const RunOptions& options,
                              uint64_t seed) {
  SimulatedFleet fleet(problem, StudyOf(problem, options, seed), options.cards,
                       RunPriors(problem, options, seed));
  nlohmann::json run = {{"seed", seed}};
  Found found;
  int64_t spent = 0;
  for (const int64_t checkpoints : options.checkpoints) {
    for (; spent < checkpoints; ++spent) {
      const FleetTrial seen = fleet.Advance();
      Count(seen.trial, options.cards[seen.card].capacity, found);
    }
    run["best"].push_back(found.best);
    run["completed"].push_back(found.num_completed);
    run["pruned"].push_back(found.num_pruned);
    run["failed"].push_back(found.num_failed);
    run["out_of_memory"].push_back(found.num_out_of_memory);
  }
  return run;
}

}  // namespace hpo
