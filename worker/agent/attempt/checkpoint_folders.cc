#include "worker/agent/attempt/checkpoint_folders.h"

#include <filesystem>
#include <system_error>

#include "spdlog/spdlog.h"
#include "worker/agent/attempt/trainer_job.h"

namespace hpo::agent {

namespace fs = std::filesystem;

CheckpointSpec CheckpointFolders::SpecOf(const LeaseRef& lease) const {
  if (options_.root.empty()) return {};
  const std::string folder = FolderOf(lease);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    spdlog::warn(
        "trial #{} runs without checkpoints, and each attempt starts it from the beginning: cannot "
        "make {}: {}",
        lease.trial.number.value, folder, error.message());
    return {};
  }
  return {.folder = folder,
          .every_steps = options_.every_steps,
          .every = options_.every,
          .quota = options_.quota};
}

void CheckpointFolders::Remove(const LeaseRef& lease) const {
  if (options_.root.empty()) return;
  const std::string folder = FolderOf(lease);
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) {
    spdlog::warn("cannot remove {}: {}", folder, error.message());
  }
}

std::string CheckpointFolders::FolderOf(const LeaseRef& lease) const {
  return (fs::absolute(options_.root) / lease.database / TrialFolder(lease.trial)).string();
}

}  // namespace hpo::agent
