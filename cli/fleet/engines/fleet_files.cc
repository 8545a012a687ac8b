// Tested by tests/cli/fleet/engines/slurm_engine_test.cc.
#include "cli/fleet/engines/fleet_files.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/user_folder.h"
#include "common/files/write_file.h"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kOwnerAlone = 0600;

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  const bool is_new = fs::create_directories(folder, error);
  if (!error && is_new) fs::permissions(folder, fs::perms::owner_all, error);
  return error ? FileError(error.value(), folder) : absl::OkStatus();
}

}  // namespace

std::string FleetFolder(absl::string_view name) {
  return absl::StrCat(UserFolder("XDG_STATE_HOME", ".local/state"), "/hpo/fleets/", name);
}

std::string JoinFileOf(const FleetPlan& plan) {
  if (!plan.server.HasSecret()) return "";
  return plan.server.join_file.empty() ? plan.folder + "/join" : plan.server.join_file;
}

absl::Status KeepSecret(const FleetPlan& plan) {
  if (plan.server.join.empty()) return absl::OkStatus();
  return KeepFile(plan, "join", plan.server.join + "\n").status();
}

absl::StatusOr<std::string> KeepFile(const FleetPlan& plan, absl::string_view name,
                                     absl::string_view content) {
  HPO_RETURN_IF_ERROR(MakeFolder(plan.folder));
  std::string path = absl::StrCat(plan.folder, "/", name);
  DurableFile file(path, kOwnerAlone);
  HPO_RETURN_IF_ERROR(file.Create());
  HPO_RETURN_IF_ERROR(file.Write(content.data(), content.size()));
  HPO_RETURN_IF_ERROR(file.Commit());
  return path;
}

absl::Status KeepOrDropFile(const FleetPlan& plan, absl::string_view name,
                            absl::string_view content) {
  if (!content.empty()) return KeepFile(plan, name, content).status();
  const std::string path = absl::StrCat(plan.folder, "/", name);
  std::error_code error;
  fs::remove(path, error);
  return error ? FileError(error.value(), path) : absl::OkStatus();
}

absl::StatusOr<std::string> ReadSecret(const FleetPlan& plan) {
  if (!plan.server.join.empty()) return plan.server.join;
  HPO_ASSIGN_OR_RETURN(const std::string content, ReadFile(plan.server.join_file));
  std::string secret(absl::StripAsciiWhitespace(content));
  if (secret.empty()) {
    return Unexpected(plan.server.join_file, "the line that hpo-server has printed", "nothing");
  }
  return secret;
}

}  // namespace hpo::cli
