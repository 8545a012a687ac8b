// What the cards of this machine are and how much of their memory is in use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"

namespace hpo {

struct GpuProcess {
  // As the driver sees it: inside a container this is the host's pid, not ours.
  int64_t pid = 0;
  // nullopt where the driver does not tell (other users' processes, some virtual cards).
  std::optional<Bytes> used;
  std::string name;  // of its program; empty where the driver does not tell
  bool operator==(const GpuProcess&) const = default;
};

struct GpuState {
  // In PCI order, of those that this process may open. CUDA numbers cards by another rule unless
  // CUDA_DEVICE_ORDER=PCI_BUS_ID, so a trainer must be given `uuid`, not `index`. MIG devices have
  // that of their GPU.
  int64_t index = 0;
  std::string uuid;              // "GPU-..." or "MIG-..."
  std::string parent_uuid = {};  // of the GPU that a MIG device is a part of; empty: it is no part
  std::string name;
  std::string driver;
  Bytes total;
  Bytes free;
  // By processes, the driver's own reserve left out.
  Bytes used;
  // "8.0"; empty where the driver does not tell, and so are these: 0.
  std::string capability;
  int64_t multiprocessors = 0;
  int64_t threads_per_multiprocessor = 0;  // that it can hold at once
  std::vector<GpuProcess> processes;  // those that compute; graphics clients only count in `used`
  bool operator==(const GpuState&) const = default;
};

// Reads the cards' state. Implementations are safe from any thread.
class GpuProbe {
 public:
  virtual ~GpuProbe() = default;

  // Every card that answers, by index. In place of a GPU that is divided by MIG its MIG devices:
  // CUDA can use nothing else of it.
  //   Unavailable  no card could be asked
  virtual absl::StatusOr<std::vector<GpuState>> List() = 0;

  // The GPU or MIG device with this UUID, now.
  //   NotFound     there is none; lists those there are
  //   Unavailable  it does not answer
  virtual absl::StatusOr<GpuState> Read(const std::string& uuid) = 0;
};

// "0: NVIDIA H200 (GPU-1234, 139.81 GiB), 1: ..." for messages; "none" for an empty list.
std::string DescribeGpus(std::span<const GpuState> gpus);

}  // namespace hpo
