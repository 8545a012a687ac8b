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

// More bytes than any GPU has. A request that failed may be larger: it fails everywhere.
inline constexpr int64_t kLargestRequest = int64_t{1} << 50;
// Of blocks, threads or multiprocessors.
inline constexpr int64_t kLargestCount = int64_t{1} << 31;

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

struct GpuShape {
  int64_t capability = 0;  // 10 x major + minor
  int64_t multiprocessors = 0;
  int64_t threads_per_multiprocessor = 0;
  bool operator==(const GpuShape&) const = default;
};

// What is allocated at `event` is where `blocks` blocks of threads share each result of a
// reduction, of `groups` groups of results.
struct SharedSum {
  size_t event = 0;
  int64_t blocks = 1;
  int64_t groups = 1;
  int64_t threads = 1;  // of a block
  bool operator==(const SharedSum&) const = default;
};

// The events of one GPU of the program.
struct RecordedDevice {
  int64_t number = 0;
  GpuShape gpu;                  // all 0 where it was not recorded
  int64_t num_sums_missing = 0;  // reductions that are not in shared_sums, although they happened
  double memory_fraction = 1.0;  // of the GPU's total; what setMemoryFraction allowed
  std::vector<bool> private_pools;  // by pool: whether it is private
  std::vector<RecordedEvent> events;
  std::vector<SharedSum> shared_sums;
  std::vector<size_t> workspaces;  // events that allocate one of cuBLAS
  size_t num_allocations = 0;
  bool operator==(const RecordedDevice&) const = default;
};

// The GPUs of a recording, or one line: which line is not as described, what was expected, what
// came. Every free names a block that is allocated, and every pool is known.
std::variant<std::vector<RecordedDevice>, std::string> ReadRecordedEvents(std::string_view text);

}  // namespace hpo::memory
