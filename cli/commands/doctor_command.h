// `hpo doctor`: what of this machine and its server keeps trials from running.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/client/session.h"
#include "common/base/bytes.h"
#include "common/device/gpu_probe.h"
#include "common/protocol/server_status.h"

namespace hpo::cli {

enum class Health { kGood, kNote, kWrong };  // a note may be as it should

struct Finding {
  std::string about;  // "server", "cards", ...
  Health health = Health::kGood;
  std::string text;
};

// What was looked at.
struct DoctorFacts {
  std::string version;  // of this program
  std::string address;
  absl::StatusOr<ServerStatus> server = ServerStatus();
  absl::StatusOr<std::vector<GpuState>> cards = std::vector<GpuState>();
  // What `hpo-trainer --version` says; nullopt: there is none beside this program.
  std::optional<absl::StatusOr<std::string>> trainer;
  std::string state_folder;
  absl::StatusOr<Bytes> room = Bytes{};  // of the state folder's disk
};

// Pure.
std::vector<Finding> Diagnose(const DoctorFacts& facts);

// The exit status: 0, or 1 where something is wrong.
absl::StatusOr<int> RunDoctor(Session& session);

}  // namespace hpo::cli
