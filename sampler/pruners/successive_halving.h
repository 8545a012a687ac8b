// Asynchronous successive halving without pausing: at the end of each rung a trial goes on if it is
// among the best of those that have ended that rung so far, or is stopped for good.
// Source: Li et al. 2020, "A system for massively parallel hyperparameter tuning", algorithm 2,
// with the semantics of Optuna 5.0 (optuna/pruners/_successive_halving.py).
#pragma once

#include <functional>

#include "sampler/api/pruner.h"

namespace hpo::sampler {

struct HalvingOptions {
  // Rung k ends at step min_resource * reduction_factor^(skipped_rungs + k).
  int64_t min_resource = 1;      // >= 1
  int64_t reduction_factor = 4;  // >= 2
  int64_t skipped_rungs = 0;
  // The first so many trials at a rung stop there.
  int64_t bootstrap_count = 0;
};

// Decides at the trial's last report, at step t with value v, once for each rung that t is the
// first report at or after the end of: stops where v is NaN, where at most bootstrap_count trials
// (it among them) have ended the rung, or where v is not within the best floor(n / factor) of the n
// trials that have, at least one; ties go on. `competes` chooses the trials that count.
//
// What a trial had at a rung is read from its reports: the value of its first one at or after the
// rung's end, unless it was NaN there or at an earlier rung. Of a trial that a pruner has stopped,
// the last report counts for the first rung it ended and for no later one; where one report ends
// several rungs, it may have been stopped at a later one of them. Peers that store each rung's
// value with the trial differ only there, and in counting no trial that ran while their "auto"
// resource was still unknown.
//
// Of trials that report epochs a rung ends at the first check point at or after its end
// (sampler/pruners/check_points.h), rungs of one check point are one, and a trial has its value at
// the check point.
std::optional<PruneDecision> DecideHalving(const History& history, TrialNumber trial,
                                           const HalvingOptions& options, Direction direction,
                                           const std::function<bool(TrialNumber)>& competes);

}  // namespace hpo::sampler
