// How a described step can be made to fit its device: the largest batch, and the cheapest changes.
// Pure; safe from any thread; a dozen replays each, some milliseconds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "memory/offline/step_description.h"

namespace hpo::memory {

// The largest batch, at most step.batch, with which the steps complete within the device's total
// less its base, whatever their beginning, all else equal; nullopt: not even one row.
std::optional<int64_t> LargestBatch(const StepDescription& step);

struct StepChange {
  std::string what;           // "micro-batch 12 in 4 parts", "fused optimizer", ...
  std::string cost = "none";  // what it takes in exchange
  StepDescription step;
  Bytes device_needed;
};

// The cheapest changes that make a step fit, each on top of those before it: attention that is not
// written out, the fused optimizer, expandable segments, a smaller micro-batch at the same
// effective batch, gradient checkpointing, frozen weights in NF4 under adapters, 16-bit products.
// Without any of them it would not fit, or only in a smaller micro-batch (cheapest_changes.h); the
// last one fits, or nothing of these is enough. Empty where the step fits as it is, or where
// nothing helps.
std::vector<StepChange> CheapestChanges(const StepDescription& step);

// All of them, but for the micro-batch.
StepDescription WithEveryChange(const StepDescription& step);

}  // namespace hpo::memory
