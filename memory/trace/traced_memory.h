// Tensors that have a size but no memory: what is allocated and freed becomes events of a trace. A
// tensor's memory is freed when its last holder goes. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memory/allocator/allocation_trace.h"

namespace hpo::memory {

class TracedMemory;

// Size in bytes of an element of each type.
inline constexpr int64_t kFloatBytes = 4;
inline constexpr int64_t kHalfBytes = 2;
inline constexpr int64_t kIndexBytes = 8;
inline constexpr int64_t kIntBytes = 4;
inline constexpr int64_t kBoolBytes = 1;

// The memory of a tensor, shared by its views. Empty, or counted by its memory, which outlives it.
class TracedStorage {
 public:
  TracedStorage() = default;
  TracedStorage(const TracedStorage& other);
  TracedStorage(TracedStorage&& other) noexcept;
  TracedStorage& operator=(TracedStorage other) noexcept;
  ~TracedStorage();

  explicit operator bool() const { return memory_ != nullptr; }
  int64_t bytes() const;
  // No other holder.
  bool IsUnique() const;
  // The same memory as a view: torch sums nothing into one in place.
  TracedStorage AsView() const;
  bool is_view() const { return is_view_; }
  void Reset() { *this = TracedStorage(); }

 private:
  friend class TracedMemory;
  TracedStorage(TracedMemory* memory, int32_t block) : memory_(memory), block_(block) {}

  TracedMemory* memory_ = nullptr;
  int32_t block_ = 0;
  bool is_view_ = false;
};

// Where a tensor's gradient goes: an output of a node of the tape, a parameter, or nowhere.
struct GradientEdge {
  int32_t node = -1;
  int32_t output = 0;
  int32_t parameter = -1;
  bool IsWanted() const { return node >= 0 || parameter >= 0; }
};

struct TracedTensor {
  TracedStorage storage;
  int64_t elements = 0;
  int64_t element_size = kFloatBytes;  // bytes
  GradientEdge edge;

  int64_t bytes() const { return elements * element_size; }
};

class TracedMemory {
 public:
  TracedMemory() = default;
  TracedMemory(const TracedMemory&) = delete;
  TracedMemory& operator=(const TracedMemory&) = delete;

  const AllocationTrace& trace() const { return trace_; }
  // Moves the trace out. Call it when nothing more is to be traced.
  AllocationTrace TakeTrace() { return std::move(trace_); }

  // bytes >= 0; a tensor without elements holds no memory and makes no event.
  TracedStorage Allocate(int64_t bytes, MemoryClass memory_class = MemoryClass::kActivations);
  // Allocated, and freed before anything else happens.
  void Touch(int64_t bytes, MemoryClass memory_class = MemoryClass::kTemporary);
  TracedTensor NewTensor(int64_t elements, int64_t element_size = kFloatBytes);

  // What follows belongs to `phase`.
  void EnterPhase(std::string phase);

 protected:
  // What is freed from here on is no event.
  void End() { ended_ = true; }

 private:
  friend class TracedStorage;

  struct BlockCount {
    int64_t bytes = 0;
    int32_t holders = 0;
    MemoryClass memory_class = MemoryClass::kActivations;
  };

  void Release(int32_t block);

  AllocationTrace trace_;
  std::vector<BlockCount> blocks_;
  bool ended_ = false;
};

}  // namespace hpo::memory
