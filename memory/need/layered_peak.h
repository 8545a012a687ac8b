// The live peak of a trial of any depth, in the time of three layers. Layers between the first and
// the last are alike, so that a trace of three tells what each of the others adds.
// Pure; safe from any thread. About 0.2 ms (-O1).
#pragma once

#include <cstdint>

#include "memory/allocator/allocation_timeline.h"
#include "memory/families/classifier_shape.h"
#include "memory/trace/kernel_traits.h"
#include "memory/trace/trial_passes.h"

namespace hpo::memory {

// Bytes, each tensor rounded up on its own.
struct LayeredPeak {
  int64_t parameters = 0;  // all of them, the head's too
  // Above parameters and optimizer states; `gradients` are those of all parameters.
  AllocationTimeline::Level training;
  AllocationTimeline::Level evaluation;
};

// `passes`: one stretch of one step and one evaluation. Sizes are those that no sum overflows with,
// and `shape.model` one that TrainerSupports and CheckShape takes.
LayeredPeak FindLayeredPeak(const ClassifierShape& shape, const TrialPasses& passes,
                            const KernelTraits& traits);

}  // namespace hpo::memory
