// The trace of a whole trial of our trainer: load, optimizer steps, evaluation.
// Mirrors worker/trainer/models and worker/trainer/training statement by statement; where that code
// changes what it allocates, tests/worker/trainer/memory_trace_test.cc fails and this changes with
// it.
// Pure; safe from any thread. About 25 us for each layer and part (-O1).
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/bytes.h"
#include "memory/allocator/allocation_trace.h"
#include "memory/families/classifier_shape.h"
#include "memory/trace/kernel_traits.h"
#include "memory/trace/trial_passes.h"

namespace hpo::memory {

// What a card's libraries keep from the first product on: WarmUp of
// worker/trainer/device/trial_device.h, as far as it decides where in memory that lies. Empty on a
// CPU.
AllocationTrace TraceWarmUp(const KernelTraits& traits);

// On a device that is warm. Phases: "model", "optimizer states", then "forward" and "backward" of
// each part, "gradient clipping", "optimizer step", "evaluation". Sizes are positive.
AllocationTrace TraceTrial(const ClassifierShape& shape, const TrialPasses& passes,
                           const KernelTraits& traits);

// Events number `begin` to `end` - 1.
struct EventRange {
  size_t begin = 0;
  size_t end = 0;
};

struct MarkedTrial {
  AllocationTrace trace;
  // The second layer's events, of every pass forward and, in training, backward, in order. Empty
  // for models of fewer than three layers.
  std::vector<EventRange> second_layer;
};
MarkedTrial TraceMarkedTrial(const ClassifierShape& shape, const TrialPasses& passes,
                             const KernelTraits& traits);

}  // namespace hpo::memory
