// What an allocator holds from a device, and how much more it may take.
// Value types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "common/base/bytes.h"

namespace hpo::memory {

// A device without a limit is given by the defaults.
struct CardMemory {
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  Bytes total{kUnlimited};  // an expandable segment's addresses reach for 9/8 of it
  Bytes left{kUnlimited};   // without what contexts and other processes hold
  bool operator==(const CardMemory&) const = default;
};

struct AllocatorStats {
  Bytes allocated;       // blocks handed out, their rounding and unsplit rest included
  Bytes allocated_peak;  // torch's allocated_bytes.peak
  Bytes reserved;        // segments (expandable: pages) held from the device
  Bytes reserved_peak;
  // Times that cached segments were freed for a request (num_alloc_retries).
  int64_t num_retries = 0;
  int64_t num_ooms = 0;
  // By how much the limit, or the device, was too small for the last request that it rejected.
  Bytes lacking;
  bool operator==(const AllocatorStats&) const = default;
};

struct HeldMemory {
  AllocatorStats stats;

  // Whether the reserved bytes and `more` bytes together fit within `bound`. If not, sets
  // stats.lacking to the bytes that are missing.
  bool Allows(Bytes bound, int64_t more) {
    const int64_t left = bound.count - stats.reserved.count;
    if (more > left) stats.lacking.count = more - left;
    return more <= left;
  }
  void Reserve(int64_t bytes) {
    stats.reserved.count += bytes;
    stats.reserved_peak = std::max(stats.reserved_peak, stats.reserved);
  }
  void Return(int64_t bytes) { stats.reserved.count -= bytes; }
};

}  // namespace hpo::memory
