// Replays that were made before, by what they depend on: configurations that differ only in what
// memory does not see (a learning rate, into how many equal parts a batch is split) share one.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "memory/need/memory_estimate.h"

namespace hpo::memory {

// Thread-safe. Holds the answers of a pure function, so that what it knows changes no answer.
class ReplayTable {
 public:
  // As ReplayMemory.
  absl::StatusOr<MemoryEstimate> Replay(const EstimateInput& input, const MemoryPlan& plan);

  // As ReplayMemoryWithin.
  absl::StatusOr<MemoryEstimate> ReplayWithin(const EstimateInput& input, const MemoryPlan& plan,
                                              Bytes limit);

 private:
  using Key = std::pair<EstimateInput, MemoryPlan>;
  // Good for every limit, or where the need was not found for those up to the one that was asked
  // for.
  struct Known {
    MemoryEstimate estimate;
    Bytes up_to;
  };
  static constexpr size_t kMostRemembered = 16'384;

  static Key KeyOf(const EstimateInput& input, const MemoryPlan& plan);

  absl::Mutex mutex_;
  std::map<Key, Known> known_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::memory
