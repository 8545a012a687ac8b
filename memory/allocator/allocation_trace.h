// What a computation allocates and frees, in order: the input of an allocator model.
// Value types; replaying is pure and safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "memory/allocator/allocator_model.h"

namespace hpo::memory {

// What a tensor is for. kTemporary: freed before the operation that made it ends.
enum class MemoryClass : uint8_t {
  kWeights,
  kGradients,
  kOptimizer,
  kActivations,
  kTemporary,
  kWorkspaces,
};
constexpr size_t kNumMemoryClasses = 6;
using BytesByClass = std::array<Bytes, kNumMemoryClasses>;

// "weights", "gradients", "optimizer", "activations", "temporaries", "workspaces".
const char* Name(MemoryClass memory_class);

struct TraceEvent {
  int64_t bytes = 0;  // as requested, also at the free
  int32_t block = 0;  // every allocation has a number of its own, from 0
  MemoryClass memory_class = MemoryClass::kActivations;
  bool allocates = true;
  uint8_t stream = 0;
  bool operator==(const TraceEvent&) const = default;
};

struct AllocationTrace {
  // From event number `first_event` to the next mark.
  struct Phase {
    size_t first_event = 0;
    std::string name;  // "load", "forward", "backward", "optimizer step", ...
    bool operator==(const Phase&) const = default;
  };

  std::vector<TraceEvent> events;
  std::vector<Phase> phases;  // ascending
  int32_t num_blocks = 0;

  // The phase of event `event`; "" before the first mark.
  const std::string& PhaseOf(size_t event) const;
  bool operator==(const AllocationTrace&) const = default;
};

// Bytes held by tensors, each rounded up to `granularity` (a power of two): what an allocator
// without segments would report.
struct LivePeak {
  Bytes peak;
  size_t event = 0;  // the allocation that reached it first
  BytesByClass by_class{};
};
LivePeak FindLivePeak(const AllocationTrace& trace, Bytes granularity);

struct ReplayResult {
  bool completed = true;  // false: out of memory
  AllocatorStats stats;
};

// The trace through the caching allocator; stops at the first out-of-memory error.
ReplayResult Replay(const AllocationTrace& trace, const AllocatorOptions& options);

}  // namespace hpo::memory
