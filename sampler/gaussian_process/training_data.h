// What a history teaches a Gaussian process. Pure; safe from any thread.
//
// Quality: completed trials by their first objective; a loss that is not finite counts as the worst
// (minus infinity: the best) finite one. A pruned trial counts where at least four completed ones
// reported at its last step: as its last value plus the median of what those gained or lost from
// that step to their end. Other pruned trials, and those under way, are fantasies: known to have
// been tried. Trials that miss a parameter of the space, or hold a number outside its domain, teach
// nothing of quality; nor do failed and cancelled ones.
// Memory, learned: trials that could not run within the asking capacity (MemoryViolation) are
// labelled 1, finished ones -1, and the former stay out of quality. Failures: failed trials are
// labelled 1, finished ones -1. Of many labels the oldest are left out.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sampler/gaussian_process/coded_space.h"
#include "sampler/history.h"

namespace hpo {

// Configurations of which some are to be avoided.
struct LabelledCodes {
  std::vector<Codes> codes;
  std::vector<double> labels;  // 1 to be avoided, -1 not
  bool any_bad = false;
};

struct TrainingData {
  // By trial number.
  std::vector<Codes> observed;
  std::vector<double> losses;  // of `observed`, finite, smaller is better
  std::vector<Codes> fantasies;
  LabelledCodes memory;
  LabelledCodes failure;
  // Of all trials in any state.
  std::vector<Codes> tried;
};

TrainingData CollectTrainingData(const History& history, const CodedSpace& space, Bytes capacity,
                                 MemoryPolicy policy);

// Numbers of the trials with these losses, the best first; the older of equals.
std::vector<size_t> OrderByLoss(std::span<const double> losses);

// The best observed configurations, around which a search looks more closely; the best first.
std::vector<Codes> Incumbents(const TrainingData& data);

// Which of the trials with these losses a model of at most `most` trials keeps, ascending: all, or
// the best half and the newest of the others.
std::vector<size_t> SelectObservations(std::span<const double> losses, size_t most);

}  // namespace hpo
