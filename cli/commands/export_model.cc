#include "cli/commands/export_model.h"

#include <filesystem>
#include <system_error>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cli/render/wording.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/worker_exchange.h"

namespace hpo {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<fs::path> ModelFolder(const Trial& trial) {
  const Completed* completed = trial.outcome ? std::get_if<Completed>(&*trial.outcome) : nullptr;
  const auto* stopped = trial.outcome ? std::get_if<StoppedByPruner>(&*trial.outcome) : nullptr;
  if (stopped != nullptr && stopped->pruner == kTimeLimitPruner) {
    return absl::FailedPreconditionError(
        absl::StrCat("trial ", Hash(trial.id.number),
                     " did not complete: it had used its time; the "
                     "log of its worker says where its best weights are"));
  }
  if (completed == nullptr || completed->model_path.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("trial ", Hash(trial.id.number), " kept no model (its trainer writes none)"));
  }
  const fs::path folder = completed->model_path;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    const std::string worker = trial.attempts.empty() ? "its worker" : trial.attempts.back().worker;
    return absl::NotFoundError(absl::StrCat("the model of trial ", Hash(trial.id.number), " is on ",
                                            worker, ", in ", folder.string(),
                                            ", and not on this machine: run hpo there, or copy "
                                            "that folder"));
  }
  for (const char* needed : {"config.json", "model.safetensors"}) {
    if (fs::is_regular_file(folder / needed, error)) continue;
    return absl::NotFoundError(
        absl::StrCat("expected ", needed, " in the model folder ", folder.string(), ", got none"));
  }
  return folder;
}

absl::Status DiskError(const std::string& what, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, ": ", error.message()));
}

absl::Status CopyFiles(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return DiskError(absl::StrCat("create ", to.string()), error);
  for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
    if (!entry.is_regular_file(error)) continue;
    const fs::path target = to / entry.path().filename();
    fs::copy_file(entry.path(), target, error);
    if (error) return DiskError(absl::StrCat("write ", target.string()), error);
  }
  if (error) return DiskError(absl::StrCat("read ", from.string()), error);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckExportTarget(const std::string& destination) {
  std::error_code error;
  const fs::path target = destination;
  if (fs::exists(target, error) &&
      !(fs::is_directory(target, error) && fs::is_empty(target, error))) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected ", destination, " to be new or an empty folder, but something is there"));
  }
  return absl::OkStatus();
}

absl::Status ExportModel(const Trial& trial, const std::string& destination) {
  HPO_ASSIGN_OR_RETURN(const fs::path folder, ModelFolder(trial));
  HPO_RETURN_IF_ERROR(CheckExportTarget(destination));
  std::error_code error;
  fs::path target = fs::absolute(destination, error).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "out/"
  const fs::path temporary = target.string() + "." + RandomId() + ".tmp";
  const absl::Cleanup remove_rest = [&temporary] {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
  };
  HPO_RETURN_IF_ERROR(CopyFiles(folder, temporary));
  fs::rename(temporary, target, error);
  if (error) return DiskError(absl::StrCat("rename to ", target.string()), error);
  return absl::OkStatus();
}

}  // namespace hpo
