#include "cli/commands/exchange/export_model.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "cli/render/wording.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/protocol/worker_exchange.h"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kLog[] = "trainer.log";  // of a program that has a trial's folder for its own

// What our trainer writes is whole, or was not written to its end. What another program leaves is
// its own business; it must have left something.
absl::Status CheckWhole(const fs::path& folder) {
  std::error_code error;
  size_t num_files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    num_files += entry.path().filename() == kLog ? 0 : 1;
  }
  if (num_files == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a model in ", folder.string(), ", got nothing"));
  }
  if (fs::exists(folder / kLog, error)) return absl::OkStatus();
  const bool has_config = fs::is_regular_file(folder / "config.json", error);
  const bool has_weights = fs::is_regular_file(folder / "model.safetensors", error) ||
                           fs::is_regular_file(folder / "model.safetensors.index.json", error);
  if (has_config == has_weights) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("expected ",
                                          has_config ? "model.safetensors" : "config.json",
                                          " in the model folder ", folder.string(), ", got none"));
}

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
        absl::StrCat("trial ", Hash(trial.id.number), " left no model; ", kWhereModelsGo));
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
  HPO_RETURN_IF_ERROR(CheckWhole(folder));
  return folder;
}

absl::Status DiskError(const std::string& what, const std::error_code& error) {
  return absl::UnavailableError(absl::StrCat("cannot ", what, ": ", error.message()));
}

absl::Status CopyFiles(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return DiskError(absl::StrCat("create ", to.string()), error);
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::skip_symlinks, error);
  if (error) return DiskError(absl::StrCat("copy ", from.string(), " to ", to.string()), error);
  fs::remove(to / kLog, error);
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
  // The folder that it will be made in, or an earlier one of those that do not exist yet.
  fs::path above = fs::absolute(target, error).lexically_normal();
  if (!above.has_filename()) above = above.parent_path();
  do {
    above = above.parent_path();
  } while (!fs::exists(above, error) && above.has_relative_path());
  const bool is_folder = fs::is_directory(above, error);
  if (!is_folder || access(above.c_str(), W_OK | X_OK) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot write to ", destination, ": ",
                                                      above.string(), ": ",
                                                      strerror(is_folder ? errno : ENOTDIR)));
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

}  // namespace hpo::cli
