// Which finished trials are the good ones, that a search seeks out. Pure; safe from any thread.
// Source: Optuna 5.0 (optuna/samplers/_tpe/sampler.py); several objectives by non-domination rank
// and the hypervolume of those chosen.
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "sampler/api/history.h"

namespace hpo::sampler {

// Orders finished trials of one objective, the best first: completed ones by loss; pruned ones by
// step, later first, then by their last value, those without any value last; then those that
// violate a constraint, by how far. Ties go to the older trial; NaN is worst.
using QualityKey = std::tuple<int, int64_t, double, TrialNumber>;
QualityKey QualityKeyOf(const HistoryTrial& trial);

// Fraction of the good set that is kept while `num_running` trials are in flight: all with up
// to 3, half with 21, a third with 39 and more. Trials in flight learn nothing from each other: a
// search so is not as far on as its number of trials says, and less of it good. Measured:
// docs/adr/012.
double ShareBeside(int64_t num_running);
// That part of a count, rounded up.
int64_t FewerBeside(int64_t count, int64_t num_running);

// Size of the good set among n finished trials: a quarter, with several objectives a tenth,
// FewerBeside() running ones; at least 1 (where n > 0) and at most 100.
int64_t NumGood(int64_t n, int64_t num_running, bool several_objectives);

// What each of so many good trials of one objective counts, the best first: the cube of its place
// counted from the worst, as a part of all; while others run a higher power, the sixth with 21
// and the ninth with 39 and more. So there is no threshold at which a trial stops being good.
// Measured: docs/adr/004.
std::vector<double> WeightsOfGood(size_t num_good, int64_t num_running);

// The best `count` (fewer where there are no more) of `finished`, by number. Feasible trials of
// several objectives come by the number of rounds in which, removing the undominated ones, they
// are still there; of the round that would be too many those that dominate the largest volume
// (hypervolume.h). NaN and missing losses are infinite. O(n log n) for one and two objectives, at
// most O(n^2) for more; among 3,000 trials some milliseconds for two objectives, tens for more.
std::vector<TrialNumber> BestTrials(std::span<const HistoryTrial* const> finished, int64_t count);

}  // namespace hpo::sampler
