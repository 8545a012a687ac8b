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
// labelled 1, finished ones -1. Of many labels the oldest of either sign are left out.
// Constraints: completed trials by how far each is beyond the limit, bent so that what is near it
// counts most. As long as no completed trial is feasible, the loss is how far they violate them
// all.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sampler/api/history.h"
#include "sampler/space/coded_space.h"

namespace hpo::sampler {

// Configurations of which some are to be avoided.
struct LabelledCodes {
  std::vector<Codes> codes;
  std::vector<double> labels;  // above 0 to be avoided, below not
  bool any_bad = false;
};

// What a smaller loss means: as long as no completed trial is feasible, to be nearer to it.
enum class LossMeaning { kObjective, kViolation };

struct TrainingData {
  LossMeaning meaning = LossMeaning::kObjective;
  // By trial number.
  std::vector<Codes> observed;
  std::vector<double> losses;  // of `observed`, finite, smaller is better
  std::vector<bool> feasible;  // of `observed`: whether one may be the best
  std::vector<Codes> fantasies;
  LabelledCodes memory;
  LabelledCodes failure;
  // By constraint; as long as none is feasible, their sum is the loss instead.
  std::vector<LabelledCodes> constraints;
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

}  // namespace hpo::sampler
