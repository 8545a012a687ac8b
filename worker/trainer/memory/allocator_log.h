// What a device's allocator does, event by event.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace hpo::trainer {

struct AllocatorEvent {
  char kind = '+';  // as in the file (trace_text.h)
  int64_t block = 0;
  int64_t bytes = 0;
  int64_t stream = 0;
  std::string operation;  // that ran, where the log names them; not in the file
  bool operator==(const AllocatorEvent&) const = default;
};

// Records from its making to its end; one at a time in a process.
class AllocatorLog {
 public:
  virtual ~AllocatorLog() = default;

  // From now on `name` says what runs in the thread that allocates or frees. Called under locks of
  // the allocator: no call of torch in it.
  using OperationName = std::string (*)();
  virtual void NameOperations(OperationName name) = 0;

  // What the caching allocator holds, as events that lead to it: each segment before its blocks,
  // which are part of the log from now on. None of the counting allocator, which has no segments.
  // To be called before anything happens, while nothing allocates.
  virtual std::vector<AllocatorEvent> Held() = 0;

  // What happened since the start or the last call; numbers go on. A block that is older than the
  // log, and not of Held, is not part of it. Only while nothing allocates.
  virtual std::vector<AllocatorEvent> Take() = 0;
};

// Gives addresses their numbers. Not thread-safe.
class BlockNumbers {
 public:
  // A new block at `address`.
  int64_t Add(uint64_t address) { return numbers_[address] = next_++; }

  // The block at `address`, which is gone then; -1 where there was none.
  int64_t Remove(uint64_t address) {
    const auto found = numbers_.find(address);
    if (found == numbers_.end()) return -1;
    const int64_t number = found->second;
    numbers_.erase(found);
    return number;
  }

 private:
  std::unordered_map<uint64_t, int64_t> numbers_;
  int64_t next_ = 0;
};

}  // namespace hpo::trainer
