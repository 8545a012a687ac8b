// Limits of CUDA's caching allocator, which wants them as a share of the card.
#pragma once

#include "common/base/bytes.h"

namespace hpo::trainer {

// The share that the allocator turns into exactly `limit` bytes again: it multiplies by `total` and
// rounds down, so half a byte more is asked for. 0 bytes: no limit, 1. Source: setMemoryFraction in
// torch's c10/cuda/CUDACachingAllocator.cpp.
constexpr double MemoryFraction(Bytes limit, Bytes total) {
  if (limit <= Bytes{} || limit >= total) return 1.0;
  return (static_cast<double>(limit.count) + 0.5) / static_cast<double>(total.count);
}

}  // namespace hpo::trainer
