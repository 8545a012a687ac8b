#include "worker/command/card_watch.h"

#include <algorithm>
#include <filesystem>

#include "absl/status/statusor.h"

namespace hpo::command {

CardWatch::CardWatch(GpuProbe& probe, const GpuState& before, bool same_numbers)
    : probe_(probe), uuid_(before.uuid), used_before_(before.used), same_numbers_(same_numbers) {
  for (const GpuProcess& process : before.processes) strangers_.insert(process.pid);
}

Bytes CardWatch::Held(const std::vector<pid_t>& program) {
  const absl::StatusOr<GpuState> gpu = probe_.Read(uuid_);
  if (!gpu.ok()) return {};
  const auto is_ours = [&](const GpuProcess& process) {
    return std::find(program.begin(), program.end(), process.pid) != program.end();
  };
  same_numbers_ =
      same_numbers_ || std::any_of(gpu->processes.begin(), gpu->processes.end(), is_ours);
  Bytes held;
  bool listed = false;
  for (const GpuProcess& process : gpu->processes) {
    if (same_numbers_ ? !is_ours(process) : strangers_.contains(process.pid)) continue;
    listed = true;
    if (!process.used.has_value()) return std::max(Bytes(), gpu->used - used_before_);
    held += *process.used;
  }
  if (listed || same_numbers_) return held;
  // Some drivers list no process at all inside a container.
  return gpu->processes.empty() ? std::max(Bytes(), gpu->used - used_before_) : Bytes();
}

bool HasTheDriversProcessNumbers() {
  // The number of that namespace is part of Linux's interface (include/linux/proc_ns.h,
  // PROC_PID_INIT_INO).
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/ns/pid", error) == "pid:[4026531836]";
}

}  // namespace hpo::command
