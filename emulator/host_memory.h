// Host memory that CUDA has pinned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hpo::emulator {

// The pinned pages of a process. Safe for threads.
class HostMemory {
 public:
  static HostMemory& Get();

  // Pinned memory of its own pages; null if the system has none. Free it with Free.
  void* Allocate(size_t bytes);
  void Free(void* pointer);

  // Pins memory of the program.
  void Register(const void* start, size_t bytes);
  void Unregister(const void* start);

  bool IsPinned(const void* pointer);

 private:
  std::mutex mutex_;
  std::map<uintptr_t, size_t> pinned_;  // start -> bytes
};

}  // namespace hpo::emulator
