// Stage B on a GPU: a trial's trace through the caching allocator, in the orders that a run may
// take. Pure; safe from any thread.
#pragma once

#include <vector>

#include "common/memory/allocation_trace.h"
#include "common/memory/bert_trace.h"
#include "common/memory/kernel_traits.h"
#include "common/memory/memory_estimate.h"

namespace hpo {

// What the allocator holds and needs, base left out; the largest over all orders.
struct CachedBytes {
  Bytes reserved_peak;
  // Smallest limit at which every order completes, to about 0.4 % (at least 2 MiB) above.
  Bytes needed_limit;
};

// A trial of these passes on a GPU: the longest batch, a shorter one as the workload has it, the
// longest again (the cache then holds what the others left), and the evaluation, after the steps or
// before them.
class CachedReplay {
 public:
  // As EstimateMemory: sizes are valid, and below what makes sums overflow.
  CachedReplay(const EstimateInput& input, const MemoryPlan& plan, const BertClassifierShape& shape,
               const KernelTraits& traits);

  // Whether every order completes within `limit`, base left out. One replay for each order.
  bool FitsWithin(Bytes limit) const;

  // A handful of replays for each order.
  CachedBytes Need() const;

  // The first order's.
  const AllocationTrace& trace() const { return traces_.front(); }

 private:
  std::vector<AllocationTrace> traces_;
};

}  // namespace hpo
