// What a program requested of torch's caching allocator, in order.
// python/dryrun/hpo_dryrun/events.py records it, and describes the text.
// This folder does without absl::Status: with it, hpo-replay would be five times as large, and it
// is a part of a wheel of 200 kB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hpo::memory {

struct RecordedEvent {
  enum class Kind : uint8_t {
    kAllocate,     // `value` bytes of `pool`
    kFree,         // the block of allocation number `value`, counted from 0
    kOutOfMemory,  // a request for `value` bytes of `pool`, which failed when it was recorded
    kEmptyCache,
    kEmptyPrivate,  // the cached segments of the private pool `pool`
  };
  Kind kind = Kind::kAllocate;
  uint16_t pool = 0;
  int64_t value = 0;
  bool operator==(const RecordedEvent&) const = default;
};

// The events of one GPU of the program.
struct RecordedDevice {
  int64_t number = 0;
  double memory_fraction = 1.0;     // of the GPU's total; what setMemoryFraction allowed
  std::vector<bool> private_pools;  // by pool: whether it is private
  std::vector<RecordedEvent> events;
  size_t num_allocations = 0;
  bool operator==(const RecordedDevice&) const = default;
};

// The GPUs of a recording, or one line: which line is not as described, what was expected, what
// came. Every free names a block that is allocated, and every pool is known.
std::variant<std::vector<RecordedDevice>, std::string> ReadRecordedEvents(std::string_view text);

}  // namespace hpo::memory
