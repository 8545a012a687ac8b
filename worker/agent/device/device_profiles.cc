#include "worker/agent/device/device_profiles.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"
#include "worker/agent/process/exit_outcome.h"

namespace hpo::agent {
namespace {

constexpr int kProfileLogLines = 3;

// The profile among the lines of `text`, which may hold log lines too.
absl::StatusOr<DeviceProfile> FindProfile(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "{")) continue;
    HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(line));
    return DeviceProfileFromJson(json);
  }
  return absl::NotFoundError("expected a line of JSON, got none");
}

bool IsOf(const DeviceProfile& measured, const DeviceProfile& device,
          const std::string& torch_build) {
  return measured.source == "measured" && measured.uuid == device.uuid &&
         measured.driver == device.driver && measured.torch_build == torch_build;
}

absl::StatusOr<DeviceProfile> RunOnce(const TrainerCommand& command, absl::Duration timeout) {
  std::error_code ignored;
  std::filesystem::remove(command.log_path, ignored);
  HPO_ASSIGN_OR_RETURN(const std::unique_ptr<TrainerProcess> process,
                       TrainerProcess::Start(command));
  const std::optional<ProcessExit> end = process->WaitFor(timeout);
  if (!end.has_value()) {
    return absl::DeadlineExceededError(
        absl::StrCat(command.argv[0], " was not done after ", absl::FormatDuration(timeout)));
  }
  if (end->code != 0) {
    return absl::UnavailableError(absl::StrCat(command.argv[0], " ", DescribeExit(*end), ": ",
                                               LogTail(command.log_path, 0, kProfileLogLines)));
  }
  HPO_ASSIGN_OR_RETURN(const std::string output, ReadFile(command.log_path));
  return FindProfile(output);
}

}  // namespace

std::optional<DeviceProfile> DeviceProfiles::Measure(const DeviceProfile& device,
                                                     const std::string& torch_build) const {
  if (const auto kept = ReadFile(path_); kept.ok()) {
    const auto profile = FindProfile(*kept);
    if (profile.ok() && IsOf(*profile, device, torch_build)) return *profile;
  }
  spdlog::info("measuring the memory of {} that context and libraries need", device.name);
  const auto profile = RunOnce(command_, timeout_);
  if (!profile.ok()) {
    spdlog::warn("cannot measure {}; default values are used: {}", device.name,
                 std::string(profile.status().message()));
    return std::nullopt;
  }
  if (!IsOf(*profile, device, torch_build)) {
    spdlog::warn(
        "expected a measurement of {} with driver {} and torch {}, got one of {} with {} "
        "and {}; default values are used",
        device.uuid, device.driver, torch_build, profile->uuid, profile->driver,
        profile->torch_build);
    return std::nullopt;
  }
  const absl::Status kept = WriteFileAtomically(path_, DeviceProfileToJson(*profile).dump());
  if (!kept.ok()) spdlog::debug("device profile: {}", std::string(kept.message()));
  return *profile;
}

DeviceProfile DeviceProfiles::Complete(DeviceProfile device, const std::string& torch_build) {
  if (!std::exchange(asked_, true)) measured_ = Measure(device, torch_build);
  if (!measured_.has_value()) return device;
  DeviceProfile complete = *measured_;
  complete.kind = device.kind;
  complete.name = device.name;
  // A limit may be below what the card has; NVML may count what CUDA does not give.
  complete.total = std::min(device.total, measured_->total);
  return complete;
}

}  // namespace hpo::agent
