// A trace in stretches that free all that they allocate, and the caching allocator under them: so
// that passes can be put into any order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/protocol/worker_facts.h"
#include "memory/allocator/allocation_trace.h"
#include "memory/allocator/allocator_model.h"
#include "memory/trace/kernel_traits.h"

namespace hpo::memory {

// Events of a trace, which has to outlive them.
using Stretch = std::span<const TraceEvent>;

// Cuts behind what is never freed, which is the first stretch, and then wherever nothing else is
// alive: of a trial's trace behind loading, each step and each batch of an evaluation.
std::vector<Stretch> CutIntoStretches(const AllocationTrace& trace);

// Copied to try another order from here on. Not thread-safe.
class StretchPlayer {
 public:
  // The allocator of `device` without a limit, holding what the warm-up of its process does. An
  // allocator that is not torch's counts as torch's with its defaults. `num_blocks`: of the trace.
  StretchPlayer(const DeviceProfile& device, const KernelTraits& traits, int64_t num_blocks);

  // Whether there was memory for all of them.
  bool Play(Stretch events);

  void SetLimit(Bytes limit) { allocator_.SetLimit(limit); }
  void EmptyCache() { allocator_.EmptyCache(); }
  const AllocatorStats& stats() const { return allocator_.stats(); }

 private:
  AllocatorModel allocator_;
  std::vector<AllocatorModel::Block> blocks_;  // by number: those that events will free
};

}  // namespace hpo::memory
