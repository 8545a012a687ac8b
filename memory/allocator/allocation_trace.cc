// Tested by tests/memory/allocator/allocator_model_test.cc.
#include "memory/allocator/allocation_trace.h"

#include <algorithm>

namespace hpo::memory {

const char* Name(MemoryClass memory_class) {
  switch (memory_class) {
    case MemoryClass::kWeights:
      return "weights";
    case MemoryClass::kGradients:
      return "gradients";
    case MemoryClass::kOptimizer:
      return "optimizer";
    case MemoryClass::kActivations:
      return "activations";
    case MemoryClass::kTemporary:
      return "temporaries";
    case MemoryClass::kWorkspaces:
      return "workspaces";
  }
  return "";
}

const std::string& AllocationTrace::PhaseOf(size_t event) const {
  static const std::string none;
  const auto after =
      std::upper_bound(phases.begin(), phases.end(), event,
                       [](size_t e, const Phase& phase) { return e < phase.first_event; });
  return after == phases.begin() ? none : std::prev(after)->name;
}

LivePeak FindLivePeak(const AllocationTrace& trace, Bytes granularity) {
  const int64_t mask = granularity.count - 1;
  int64_t live = 0;
  LivePeak result;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    const int64_t bytes = (event.bytes + mask) & ~mask;
    live += event.allocates ? bytes : -bytes;
    if (live > result.peak.count) {
      result.peak.count = live;
      result.event = i;
    }
  }
  for (size_t i = 0; i < trace.events.size() && i <= result.event; ++i) {
    const TraceEvent& event = trace.events[i];
    const Bytes bytes{(event.bytes + mask) & ~mask};
    Bytes& total = result.by_class[static_cast<size_t>(event.memory_class)];
    event.allocates ? total += bytes : total -= bytes;
  }
  return result;
}

ReplayResult Replay(const AllocationTrace& trace, const AllocatorOptions& options) {
  AllocatorModel allocator(options);
  std::vector<AllocatorModel::Block> blocks(static_cast<size_t>(trace.num_blocks));
  ReplayResult result;
  for (const TraceEvent& event : trace.events) {
    AllocatorModel::Block& block = blocks[static_cast<size_t>(event.block)];
    if (!event.allocates) {
      allocator.Free(block);
      continue;
    }
    const auto allocated = allocator.Allocate(Bytes{event.bytes}, event.stream);
    if (!allocated.has_value()) {
      result.completed = false;
      break;
    }
    block = *allocated;
  }
  result.stats = allocator.stats();
  return result;
}

}  // namespace hpo::memory
