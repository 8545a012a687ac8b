// Memory of the machine, of the control group a process lives in, and of one process: what the
// worker needs to cap a CPU budget and to tell a host out-of-memory kill from other ends.
// Linux only; control groups version 2, and version 1 where the machine still mounts it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"

namespace hpo {

struct HostMemory {
  Bytes total;
  Bytes available;  // the kernel's own guess of what can be had without swapping
  bool operator==(const HostMemory&) const = default;
};

struct CgroupMemory {
  // The tightest limit of the group and its ancestors; nullopt: none.
  std::optional<Bytes> limit;
  // Of the group that has that limit (the process's own where there is none); page cache that can
  // be dropped at once is left out.
  Bytes used;
  // Processes of the group that the kernel killed for memory, since the group was made.
  int64_t oom_kills = 0;
  bool operator==(const CgroupMemory&) const = default;
};

// Reads /proc and /sys/fs/cgroup below `root` (tests give another one). Keeps nothing; safe from
// any thread.
class HostMemoryReader {
 public:
  explicit HostMemoryReader(std::filesystem::path root = "/");

  //   Unavailable  /proc/meminfo cannot be read or lacks a line; names the file
  absl::StatusOr<HostMemory> ReadHost() const;

  // The memory group of process `pid` (0: our own).
  //   NotFound     no such process, or no memory controller on this machine, or its group is not
  //               mounted here
  //   Unavailable  a file that should be there is not readable; names it
  absl::StatusOr<CgroupMemory> ReadCgroup(int64_t pid = 0) const;

  // Resident bytes of `pid` (0: our own).
  //   NotFound  no such process, or it has ended and was not reaped
  absl::StatusOr<Bytes> ReadResident(int64_t pid = 0) const;

  // What our own process can still get: the machine's available bytes, less where the control group
  // allows less. Works without a memory controller.
  //   Unavailable  see ReadHost
  absl::StatusOr<Bytes> ReadAllowed() const;

 private:
  std::filesystem::path root_;
};

}  // namespace hpo
