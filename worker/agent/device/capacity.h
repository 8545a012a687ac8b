// How many bytes a trial may use on this worker's device now. Implementations are safe from any
// thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/bytes.h"
#include "common/device/gpu_probe.h"
#include "common/protocol/worker_facts.h"

namespace hpo::agent {

// This machine, as it calls itself.
std::string HostName();

class DeviceCapacity {
 public:
  virtual ~DeviceCapacity() = default;

  // What the device is.
  //   Unavailable, NotFound  the card does not answer
  virtual absl::StatusOr<DeviceProfile> Profile() = 0;

  // Bytes that a trainer of ours could have now, what our warm trainer holds included.
  //   Unavailable, NotFound  the card does not answer
  virtual absl::StatusOr<Bytes> Available() = 0;

  // Called before our trainer is started, and after, with its process id; nullopt once it has gone.
  virtual void TrainerStarting() = 0;
  virtual void TrainerRuns(std::optional<pid_t> pid) = 0;
};

// A budget of live bytes on the CPU: --memory-limit.
class CpuCapacity final : public DeviceCapacity {
 public:
  explicit CpuCapacity(Bytes limit) : limit_(limit) {}

  absl::StatusOr<DeviceProfile> Profile() override;
  absl::StatusOr<Bytes> Available() override { return limit_; }
  void TrainerStarting() override {}
  void TrainerRuns(std::optional<pid_t>) override {}

 private:
  Bytes limit_;
};

// One card: what is free, and what our own trainer holds. Inside a container the driver lists
// processes by numbers that are not ours; there, a process that appeared while our trainer started
// is taken for it.
class GpuCapacity final : public DeviceCapacity {
 public:
  // `limit`: --memory-limit, where it is below what the card has.
  GpuCapacity(GpuProbe& probe, std::string uuid, std::optional<Bytes> limit)
      : probe_(probe), uuid_(std::move(uuid)), limit_(limit) {}

  absl::StatusOr<DeviceProfile> Profile() override;
  absl::StatusOr<Bytes> Available() override;
  void TrainerStarting() override;
  void TrainerRuns(std::optional<pid_t> pid) override;

 private:
  GpuProbe& probe_;
  const std::string uuid_;
  std::optional<Bytes> limit_;
  absl::Mutex mutex_;
  std::set<int64_t> strangers_ ABSL_GUARDED_BY(mutex_);  // listed before our trainer started
  std::optional<pid_t> trainer_ ABSL_GUARDED_BY(mutex_);
};

// Several GPUs of one trial: what the smallest has, as each rank needs about the same. The profile
// is that of the GPU with the least memory.
class GpuSetCapacity final : public DeviceCapacity {
 public:
  // At least one.
  explicit GpuSetCapacity(std::vector<std::unique_ptr<GpuCapacity>> gpus)
      : gpus_(std::move(gpus)) {}

  absl::StatusOr<DeviceProfile> Profile() override;
  absl::StatusOr<Bytes> Available() override;
  void TrainerStarting() override;
  void TrainerRuns(std::optional<pid_t> pid) override;

 private:
  const std::vector<std::unique_ptr<GpuCapacity>> gpus_;
};

}  // namespace hpo::agent
