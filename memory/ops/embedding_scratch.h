// What the gradient of an embedding adds to its result on a card, where it sorts the indices:
// rows of equal indices are summed in parts, and the parts are summed.
// Source: torch 2.11, aten/src/ATen/native/cuda/Embedding.cu, EmbeddingBackwardKernel.cu, and cub's
// sort and scan as torch calls them. Held against torch itself on an emulated A100:
// tests/worker/trainer/memory_trace_test.cc.
#pragma once

#include <cstdint>

#include "memory/trace/kernel_traits.h"

namespace hpo::memory {

// Bytes, in the order in which they are first needed.
struct EmbeddingScratch {
  int64_t indices = 0;  // of one copy
  int64_t sort = 0;
  int64_t unique = 0;    // finding where an index begins
  int64_t segments = 0;  // one number for each index that may occur
  int64_t scan = 0;
  int64_t parts = 0;  // one number for each part that there may be
  int64_t sums = 0;   // of the parts, in float32
  bool operator==(const EmbeddingScratch&) const = default;
};

// Whether the gradient is summed without sorting: nothing is taken then.
bool SumsWithoutSorting(int64_t num_indices, const KernelTraits& traits);

// num_indices, rows, width >= 1: of the indices and of the table.
EmbeddingScratch EmbeddingScratchOf(int64_t num_indices, int64_t rows, int64_t width,
                                    const KernelTraits& traits);

}  // namespace hpo::memory
