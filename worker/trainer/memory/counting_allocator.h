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

#include "common/bytes.h"
#include "worker/trainer/memory/device_memory.h"

namespace hpo {

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

  static constexpr Bytes kGranularity{64};

  CountingAllocator(const CountingAllocator&) = delete;
  CountingAllocator& operator=(const CountingAllocator&) = delete;

 private:
  class Adapter;  // the c10::Allocator

  CountingAllocator() = default;
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
};

}  // namespace hpo
