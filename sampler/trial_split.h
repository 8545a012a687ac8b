// Splits trials into those to seek and those to avoid. Pure; safe from any thread.
// Source: shared/research/optuna.md 1.4; several objectives by non-domination rank (1.9).
#pragma once

#include <cstdint>
#include <vector>

#include "sampler/history.h"

namespace hpo {

// A trial with its memory violation at the asking capacity (0: feasible).
struct JudgedTrial {
  const HistoryTrial* trial = nullptr;
  double violation = 0.0;
};

// Both by number.
struct TrialSplit {
  std::vector<const HistoryTrial*> below;  // good
  std::vector<const HistoryTrial*> above;  // the rest
};

// Size of the good set among n trials: a tenth, at least 1 (where n > 0) and at most 25.
int64_t NumBelow(int64_t n);

// `trials`: COMPLETED, PRUNED and RUNNING ones, by number. Running ones are never good. The others
// fill the good set in this order until it holds `num_below`: completed by loss; pruned by step,
// later first, then by their last value, those without any value last; infeasible by violation.
// Ties go to the older trial; NaN is worst.
TrialSplit SplitTrials(const std::vector<JudgedTrial>& trials, int64_t num_below);

}  // namespace hpo
