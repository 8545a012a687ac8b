// What a sum of a card adds to its result: where few results are each made of many elements,
// several blocks of threads share one and meet in the card's memory.
// Source: torch 2.11, aten/src/ATen/native/cuda/Reduce.cuh (ReduceConfig, setReduceConfig,
// gpu_reduce_kernel). Held against torch itself on emulated cards: tests/worker/trainer.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "memory/trace/kernel_traits.h"

namespace hpo::memory {

// A sum of a contiguous matrix over its rows, or over its columns.
struct Reduction {
  int64_t rows = 0;
  int64_t columns = 0;
  bool over_rows = true;     // one result for each column; else one for each row
  int64_t element_size = 4;  // bytes; sums are float32 whatever is summed
};

// Bytes, in the order in which they are allocated; 0: nothing.
struct ReductionScratch {
  int64_t output_sums = 0;   // of 16-bit results, where the input is summed in several pieces
  int64_t partial_sums = 0;  // of a piece
  int64_t semaphores = 0;
  int64_t pieces = 1;  // summed one after the other
  bool operator==(const ReductionScratch&) const = default;
};

// rows, columns >= 1. Nothing on a CPU.
ReductionScratch ReductionScratchOf(const Reduction& reduction, const KernelTraits& traits);

// Memory that at::_foreach_norm allocates on a GPU in addition to its results, for `tensors`
// tensors, the largest of `most_elements` elements. Source: torch 2.11,
// aten/src/ATen/native/cuda/ForeachReduceOp.cu.
Bytes NormsOfChunks(int64_t tensors, int64_t most_elements);

}  // namespace hpo::memory
