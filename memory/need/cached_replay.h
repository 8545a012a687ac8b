// The replay on a GPU: a trial's trace through the caching allocator, in the orders that a run may
// take.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "memory/allocator/allocation_trace.h"
#include "memory/families/classifier_shape.h"
#include "memory/need/memory_estimate.h"
#include "memory/need/stretch_player.h"
#include "memory/need/trial_trace.h"
#include "memory/trace/kernel_traits.h"

namespace hpo::memory {

// What the allocator holds and needs, base left out.
struct CachedBytes {
  // Without a limit. Of what is live, what libraries keep is left out, and what the allocator does
  // not split off from a block counts; the most of the orders that may run.
  Bytes expected_live_peak;
  Bytes expected_reserved_peak;  // in the order that runs
  Bytes reserved_peak;           // without a limit, the largest of the orders that may run
  // A limit at which each of them completes, about 0.4 % (at least 2 MiB) above the smallest; where
  // batches vary in length, each completes at a few percent above it too.
  Bytes needed_limit;
  bool fragile = false;  // the order after an emptied cache needs 3 % more than that, or less
  bool operator==(const CachedBytes&) const = default;
};

// A trial of these passes on a warm GPU. The order that runs: the longest batch and the evaluation,
// as the probe runs them, then steps and the evaluation. Where all batches are of one length, the
// steps are that, twice (the cache then holds what the others left), and the shorter one that ends
// an epoch. Where they vary, some are drawn (drawn_batches.h), and there is a second order: the
// longest batch after each of them. One more order may run where a configuration empties the cache:
// the first, but that it begins with the evaluation.
// Pure: the same passes need the same, whatever limit is asked for. Not thread-safe.
class CachedReplay {
 public:
  // As EstimateMemory: sizes are valid, and below what makes sums overflow.
  CachedReplay(const EstimateInput& input, const MemoryPlan& plan, const ClassifierShape& shape,
               const KernelTraits& traits);
  CachedReplay(const CachedReplay&) = delete;
  CachedReplay& operator=(const CachedReplay&) = delete;

  // Whether every order completes within `limit`, base left out. One replay for each order.
  bool FitsWithin(Bytes limit) const;

  // A handful of replays for each order. nullopt where the needed limit is above `limit`, or an
  // order does not complete within it; that takes less to find out.
  std::optional<CachedBytes> NeedWithin(Bytes limit) const;

  // Loading, a step of each length, an evaluation.
  const AllocationTrace& trace() const { return trace_; }
  // Of trace().
  const LivePeak& live_peak() const { return live_peak_; }

 private:
  using Order = std::vector<Stretch>;  // of trace_

  void Load(const EstimateInput& input, const KernelTraits& traits, Stretch loading);

  // By how much `limit` is too small for the request at which the order fails; 0: it completes.
  Bytes Lacking(const Order& order, Bytes limit) const;
  AllocatorStats Unlimited(const Order& order) const;
  Bytes SmallestLimit(const Order& order, Bytes from) const;
  Bytes SmallestLimitOfAll() const;

  AllocationTrace trace_;
  std::optional<StretchPlayer> loaded_;  // after the stretch that loads, without a limit
  std::vector<Order> orders_;            // the first is the one that runs
  size_t num_that_run_ = 1;  // of them: those that a trial of this configuration may take
  bool varies_ = false;      // the length of batches
  LivePeak live_peak_;
  Bytes held_;   // by libraries, before anything is loaded
  Bytes least_;  // of tensors, and of what libraries keep
  Bytes unit_;   // of needed limits
};

}  // namespace hpo::memory
