// The CPU's counterpart of CUDA's caching allocator: counts every byte torch holds on the host and
// refuses what goes over a budget with c10::OutOfMemoryError. So recovery runs for real where there
// is no GPU, and a memory limit protects the host.
//
// An allocation counts as its size rounded up to 64 bytes, the CPU allocator's alignment. Counts
// are exact: what is freed is taken off to the byte, and once every tensor made since a moment is
// gone, live bytes are what they were at that moment.
//
// One for the whole process, installed once and never removed (torch keeps pointers to it).
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"
#include "worker/trainer/memory/device_memory.h"

namespace hpo::trainer {

// Sees every allocation and free of the CountingAllocator, in the order in which each thread makes
// them. Called by the thread that allocates or frees, several at a time where several do; must not
// allocate tensors. Sizes are as counted (rounded up to kGranularity); an address is unique among
// those that are live.
class AllocationWatcher {
 public:
  virtual ~AllocationWatcher() = default;

  // false: refused, with the error of an exhausted budget.
  virtual bool Admit(Bytes size) = 0;
  virtual void Allocated(const void* address, Bytes size) = 0;
  virtual void Freed(const void* address, Bytes size) = 0;
};

class CountingAllocator {
 public:
  // Puts it in front of torch's CPU allocator at the first call; later calls return the same one.
  // Memory that torch allocated before stays valid and is not counted.
  static CountingAllocator& Install();

  Bytes live() const { return Bytes{live_.load(std::memory_order_relaxed)}; }
  Bytes peak() const { return Bytes{peak_.load(std::memory_order_relaxed)}; }
  // The peak starts again from what is live now.
  void ResetPeak();

  // Live bytes may not exceed `limit`; 0: no limit. What is live already stays.
  void SetLimit(Bytes limit);
  Bytes limit() const { return Bytes{limit_.load(std::memory_order_relaxed)}; }

  // See DeviceMemory.
  std::optional<RefusedAllocation> TakeRefused();

  // `watcher` sees what happens from now on, until another or nullptr takes its place; it outlives
  // that. Only while no other thread allocates or frees.
  void SetWatcher(AllocationWatcher* watcher) { watcher_.store(watcher); }

  static constexpr Bytes kGranularity{64};

  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

 private:
  class Adapter;  // the c10::Allocator

  CountingAllocator() = default;
  AllocationWatcher* watcher() const { return watcher_.load(std::memory_order_relaxed); }
  // Takes `size` bytes off the budget, or throws c10::OutOfMemoryError.
  void Reserve(Bytes size);
  // Records and throws.
  void Refuse(Bytes size, Bytes live, Bytes limit);
  void Release(Bytes size);

  std::atomic<int64_t> live_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> limit_{0};
  std::atomic<int64_t> refused_requested_{0};  // 0: none since the last TakeRefused
  std::atomic<int64_t> refused_live_{0};
  std::atomic<AllocationWatcher*> watcher_{nullptr};
};

}  // namespace hpo::trainer
