// What hpo-trainer measures of a card, measured once for each card, driver and torch build and kept
// in a file. One thread at a time.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/protocol/worker_facts.h"
#include "worker/agent/process/trainer_process.h"

namespace hpo::agent {

class DeviceProfiles {
 public:
  // `command` measures: it exits with 0 and its log has one line of JSON as DeviceProfileToJson
  // writes it (hpo-trainer --profile-device). `path`: the file that keeps the last measurement.
  DeviceProfiles(TrainerCommand command, std::string path,
                 absl::Duration timeout = absl::Minutes(2))
      : command_(std::move(command)), path_(std::move(path)), timeout_(timeout) {}

  // `device` with base, workspace and the rest as measured under `torch_build`: from the file, or
  // by the command; the total is the smaller of both. Where that fails it comes back as it is, with
  // the shipped defaults, after a warning; that is not tried again by this object.
  DeviceProfile Complete(DeviceProfile device, const std::string& torch_build);

 private:
  std::optional<DeviceProfile> Measure(const DeviceProfile& device,
                                       const std::string& torch_build) const;

  TrainerCommand command_;
  std::string path_;
  absl::Duration timeout_;
  bool asked_ = false;
  std::optional<DeviceProfile> measured_;
};

}  // namespace hpo::agent
