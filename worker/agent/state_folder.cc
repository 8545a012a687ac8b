#include "worker/agent/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hpo {

namespace fs = std::filesystem;

absl::StatusOr<StateFolder> OpenStateFolder(const std::string& root, const std::string& name) {
  StateFolder state;
  state.path = (fs::path(root) / absl::StrReplaceAll(name, {{"/", "_"}, {":", "-"}})).string();
  std::error_code error;
  for (const char* folder : {"runs", "data_facts"}) {
    if (!error) fs::create_directories(fs::path(state.path) / folder, error);
  }
  if (!error) fs::permissions(state.path, fs::perms::owner_all, error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("--state-dir: cannot make ", state.path, ": ", error.message()));
  }
  state.lock.Reset(open((state.path + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!state.lock.ok() || flock(state.lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::AlreadyExistsError(absl::StrCat("another hpo-worker named ", name, " uses ",
                                                 state.path, "; give this one its own --name"));
  }
  return state;
}

}  // namespace hpo
