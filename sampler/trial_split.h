// Which finished trials are the good ones, that a search seeks out. Pure; safe from any thread.
// Source: shared/research/optuna.md 1.4; several objectives by non-domination rank (1.9).
#pragma once

#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "sampler/history.h"

namespace hpo {

// Orders finished trials of one objective, the best first: completed ones by loss; pruned ones by
// step, later first, then by their last value, those without any value last. Ties go to the older
// trial; NaN is worst.
using QualityKey = std::tuple<int, int64_t, double, TrialNumber>;
QualityKey QualityKeyOf(const HistoryTrial& trial);

// Size of the good set among n trials: a tenth, at least 1 (where n > 0) and at most 25.
int64_t NumGood(int64_t n);

// The best `count` (fewer where there are no more) of `finished`, by number. Completed trials of
// several objectives come by the number of rounds in which, removing the undominated ones, they
// are still there.
std::vector<TrialNumber> BestTrials(std::span<const HistoryTrial* const> finished, int64_t count);

}  // namespace hpo
