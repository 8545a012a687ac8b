// Tested by tests/worker/agent/device_choice_test.cc.
#include "worker/agent/device/capacity.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/device/processors.h"
#include "memory/need/device_defaults.h"

namespace hpo::agent {
namespace {

std::string ProcessorName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (absl::StartsWith(line, "model name")) {
      const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 1));
      return parts.back();
    }
  }
  return "CPU";
}

}  // namespace

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

absl::StatusOr<DeviceProfile> CpuCapacity::Profile() {
  DeviceProfile profile;
  HPO_ASSIGN_OR_RETURN(profile.threads, TrainerThreads());
  profile.kind = "cpu";
  profile.name = ProcessorName();
  profile.uuid = HostName();
  profile.total = limit_;
  return profile;
}

absl::StatusOr<DeviceProfile> GpuCapacity::Profile() {
  HPO_ASSIGN_OR_RETURN(const GpuState gpu, probe_.Read(uuid_));
  DeviceProfile profile;
  profile.kind = "cuda";
  profile.name = gpu.name;
  profile.uuid = gpu.uuid;
  profile.driver = gpu.driver;
  const Bytes for_processes = gpu.free + gpu.used;
  profile.total = limit_ ? std::min(*limit_, for_processes) : for_processes;
  profile.base = memory::kDefaultCudaBase;
  profile.workspace = memory::kLargestCudaWorkspace;
  profile.capability = gpu.capability;
  profile.multiprocessors = gpu.multiprocessors;
  profile.threads_per_multiprocessor = gpu.threads_per_multiprocessor;
  return profile;
}

absl::StatusOr<Bytes> GpuCapacity::Available() {
  HPO_ASSIGN_OR_RETURN(const GpuState gpu, probe_.Read(uuid_));
  Bytes available = gpu.free;
  absl::MutexLock lock(&mutex_);
  bool listed = false;
  for (const GpuProcess& process : gpu.processes) listed = listed || process.pid == trainer_;
  for (const GpuProcess& process : gpu.processes) {
    const bool ours =
        trainer_ && (listed ? process.pid == *trainer_ : !strangers_.contains(process.pid));
    if (ours) available += process.used.value_or(Bytes{});
  }
  return limit_ ? std::min(*limit_, available) : available;
}

void GpuCapacity::TrainerStarting() {
  const absl::StatusOr<GpuState> gpu = probe_.Read(uuid_);
  absl::MutexLock lock(&mutex_);
  strangers_.clear();
  if (!gpu.ok()) return;
  for (const GpuProcess& process : gpu->processes) {
    strangers_.insert(process.pid);
  }
}

void GpuCapacity::TrainerRuns(std::optional<pid_t> pid) {
  absl::MutexLock lock(&mutex_);
  trainer_ = pid;
}

absl::StatusOr<DeviceProfile> GpuSetCapacity::Profile() {
  HPO_ASSIGN_OR_RETURN(DeviceProfile smallest, gpus_.front()->Profile());
  for (const std::unique_ptr<GpuCapacity>& gpu : gpus_) {
    HPO_ASSIGN_OR_RETURN(DeviceProfile profile, gpu->Profile());
    if (profile.total < smallest.total) smallest = std::move(profile);
  }
  return smallest;
}

absl::StatusOr<Bytes> GpuSetCapacity::Available() {
  HPO_ASSIGN_OR_RETURN(Bytes least, gpus_.front()->Available());
  for (const std::unique_ptr<GpuCapacity>& gpu : gpus_) {
    HPO_ASSIGN_OR_RETURN(const Bytes available, gpu->Available());
    least = std::min(least, available);
  }
  return least;
}

void GpuSetCapacity::TrainerStarting() {
  for (const std::unique_ptr<GpuCapacity>& gpu : gpus_) gpu->TrainerStarting();
}

void GpuSetCapacity::TrainerRuns(std::optional<pid_t> pid) {
  for (const std::unique_ptr<GpuCapacity>& gpu : gpus_) gpu->TrainerRuns(pid);
}

}  // namespace hpo::agent
