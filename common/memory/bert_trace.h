// The trace of a whole trial of our trainer's BERT classifier: load, optimizer steps, evaluation.
// Mirrors worker/trainer/models and worker/trainer/training statement by statement; where that code
// changes what it allocates, tests/worker/trainer/memory_trace_test.cc fails and this changes with
// it.
// Pure; safe from any thread. About 25 us for each layer and part (-O1).
#pragma once

#include <cstdint>
#include <vector>

#include "common/memory/allocation_trace.h"
#include "common/memory/kernel_traits.h"
#include "common/memory/optimizer_states.h"
#include "common/memory/trial_passes.h"
#include "common/model_spec.h"

namespace hpo {

struct BertClassifierShape {
  ModelShape model;                 // with the trial's dropout
  std::vector<int64_t> head_sizes;  // hidden layers of the classification head
  double head_dropout = 0.0;
  int64_t num_labels = 2;
  bool multi_label = false;  // several labels a row
  OptimizerSpec optimizer;
  Execution execution;
};

// On a device that is warm: workspaces come first, before the phase "model". Phases: "model",
// "optimizer states", then "forward" and "backward" of each part, "gradient
// clipping", "optimizer step", "evaluation". Sizes are positive.
AllocationTrace TraceBertTrial(const BertClassifierShape& shape, const TrialPasses& passes,
                               const KernelTraits& traits);

}  // namespace hpo
