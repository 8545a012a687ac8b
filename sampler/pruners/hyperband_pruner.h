// Several brackets of successive halving, from "stop early, try many" to "never stop": where the
// early values of trials mislead, a bracket that looks later still finds the best.
// Source: Li et al. 2018, "Hyperband", algorithm 1, with asynchronous brackets as in
// Optuna 5.0 (optuna/pruners/_hyperband.py).
//
// Trials of one bracket compete with each other only. In Optuna the sampler too sees only the
// bracket of the trial it proposes. Ours sees every trial: its model is fitted to completed trials
// and to what memory taught, which mean the same in every bracket; a view by bracket would only
// divide what is known by the number of brackets.
#pragma once

#include <string>
#include <vector>

#include "sampler/api/pruner.h"

namespace hpo::sampler {

// The shares in which trials are dealt to brackets; bracket b leaves out the first b rungs.
// ceil(B * factor^(B - 1 - b) / (B - b)) for b in 0 ... B - 1, where
// B = floor(log_factor(max_resource / min_resource)) + 1, the logarithm a quotient of two doubles.
std::vector<int64_t> BracketWeights(int64_t min_resource, int64_t max_resource,
                                    int64_t reduction_factor);

// The bracket of a trial: CRC-32 of "<study>_<number>" modulo the sum of the weights, walked
// through them. The same on every machine and after every restart.
int64_t BracketOf(const std::string& study, TrialNumber trial, const std::vector<int64_t>& weights);

// Threads: as Pruner.
class HyperbandPruner final : public Pruner {
 public:
  HyperbandPruner(const PrunerSpec& spec, Direction direction, std::string study)
      : spec_(spec), direction_(direction), study_(std::move(study)) {}

  // With max_resource nullopt it is one more than the longest completed trial's last step, and
  // nothing is stopped before a trial has completed.
  std::optional<PruneDecision> Decide(const History& history, TrialNumber trial) const override;

 private:
  PrunerSpec spec_;
  Direction direction_;
  std::string study_;
};

}  // namespace hpo::sampler
