// What our trainer's classifiers of BERT's kind (RoBERTa, ELECTRA, DistilBERT too) allocate and
// free, operation by operation, in the order of worker/trainer/models. Where that code changes,
// this changes with it: tests/worker/trainer/memory_estimate_test.cc compares the two. Pure; safe
// from any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/memory/allocator/allocation_timeline.h"
#include "common/memory/trace/kernel_traits.h"
#include "common/memory/trace/optimizer_states.h"
#include "common/models/model_spec.h"

namespace hpo {

// Shapes of one micro-batch through the model.
struct PassShape {
  ModelShape model;
  std::vector<int64_t> head_sizes;  // hidden layers of the classification head
  int64_t num_labels = 2;           // 0: no classification head
  int64_t rows = 1;
  int64_t tokens = 16;  // of every row, padding included
};

// Bytes of the parameters, each tensor rounded up on its own.
int64_t EncoderParameterBytes(const ModelShape& model, const KernelTraits& traits);
int64_t HeadParameterBytes(const PassShape& shape, const KernelTraits& traits);

// The head's parameters.
std::vector<ParameterExtent> HeadExtents(const PassShape& shape);
// What the optimizer keeps for the head alone, each tensor rounded up on its own.
int64_t HeadStateBytes(const OptimizerSpec& optimizer, const PassShape& shape,
                       const KernelTraits& traits);

// Forward and backward of one micro-batch, from the batch's tensors to the last gradient. Encoder
// gradients are `gradients` of the timeline, added to what is there when `gradients_exist`; the
// head's are not part of it.
AllocationTimeline TrainingPass(const PassShape& shape, const KernelTraits& traits,
                                bool gradients_exist);

// Forward of one batch without gradients.
AllocationTimeline EvaluationPass(const PassShape& shape, const KernelTraits& traits);

}  // namespace hpo
