// One study of a benchmark, from its first trial to its last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/sampler/problem.h"
#include "bench/sampler/simulated_fleet.h"
#include "nlohmann/json.hpp"

namespace hpo {

struct RunOptions {
  std::string sampler = SamplerSpec().type;
  std::string startup = SamplerSpec().startup;
  PrunerSpec pruner = {.type = "none"};
  std::vector<int64_t> evaluations = {20, 50, 100, 200};  // ascending
  std::vector<int64_t> checkpoints;                       // ascending; empty: evaluations count
  std::vector<Card> cards;
  // The regret at which a run ends.
  std::optional<double> target;
  // Trials that samplers are told the study may have.
  std::optional<int64_t> budget;
  // Trials of an earlier study of a related problem (Related); 0: there was none.
  int64_t warm_start = 0;
  double prior_shift = 0.0;
  double prior_scale = 1.0;
};

StudySpec StudyOf(const SamplerProblem& problem, const RunOptions& options, uint64_t seed);

// The earlier study of another seed, its finished trials; empty without one.
std::vector<sampler::PriorStudy> RunPriors(const SamplerProblem& problem, const RunOptions& options,
                                           uint64_t seed);

// The regret of the best feasible trial after each number of evaluations, infinite without one, how
// trials ended, and when the target was reached.
nlohmann::json RunEvaluations(const SamplerProblem& problem, const RunOptions& options,
                              uint64_t seed);

// The loss of the best feasible trial that completed within each number of checkpoints, infinite
// without one, and how many trials completed, were stopped by the pruner, failed or ran out of
// memory till then. Each report is a checkpoint, of trials under way too; a trial that ends without
// a report has spent one.
nlohmann::json RunCheckpoints(const SamplerProblem& problem, const RunOptions& options,
                              uint64_t seed);

}  // namespace hpo
