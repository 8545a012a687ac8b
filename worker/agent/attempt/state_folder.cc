#include "worker/agent/attempt/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/ids.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "spdlog/spdlog.h"
#include "worker/agent/process/wait_for_machine.h"

namespace hpo::agent {

namespace fs = std::filesystem;

namespace {

constexpr size_t kIdDigits = 8;

absl::Status CannotUse(const absl::Status& why, bool may_pass) {
  return absl::Status(
      may_pass ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition,
      absl::StrCat("--state-dir: cannot use ", why.message()));
}

absl::Status CannotUse(const std::string& path, int error) {
  return CannotUse(FileError(error, path), MayPass(error));
}

// Of the id's file, which is read and written as a whole.
absl::Status CannotUse(const absl::Status& why) { return CannotUse(why, MayPass(why)); }

}  // namespace

absl::StatusOr<std::string> DefaultWorkerName(const std::string& host, const std::string& card_uuid,
                                              const std::string& root) {
  if (!card_uuid.empty()) {
    const std::vector<absl::string_view> parts = absl::StrSplit(card_uuid, '-');
    return absl::StrCat(host, ":", parts[0], parts.size() > 1 ? "-" : "",
                        parts.size() > 1 ? parts[1] : "");
  }
  const std::string path = root + "/id";
  absl::StatusOr<std::string> id = ReadFile(path);
  if (absl::IsNotFound(id.status())) {
    std::error_code error;
    fs::create_directories(root, error);
    if (error) return CannotUse(root, error.value());
    id = RandomId().substr(0, kIdDigits);
    if (const absl::Status made = WriteFileAtomically(path, *id); !made.ok()) id = made;
  }
  if (!id.ok()) return CannotUse(id.status());
  return absl::StrCat(host, ":cpu-", absl::StripAsciiWhitespace(*id));
}

absl::StatusOr<StateFolder> OpenStateFolder(const std::string& root, const std::string& name) {
  StateFolder state;
  state.path = (fs::path(root) / absl::StrReplaceAll(name, {{"/", "_"}, {":", "-"}})).string();
  std::error_code error;
  for (const char* folder : {"runs", "data_facts"}) {
    if (!error) fs::create_directories(fs::path(state.path) / folder, error);
  }
  if (!error) fs::permissions(state.path, fs::perms::owner_all, error);
  if (error) return CannotUse(state.path, error.value());
  const std::string lock = state.path + "/lock";
  state.lock.Reset(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!state.lock.ok()) return CannotUse(lock, errno);
  if (flock(state.lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return CannotUse(lock, errno);
    return absl::AlreadyExistsError(absl::StrCat("another hpo-worker named ", name, " uses ",
                                                 state.path, "; give this one its own --name"));
  }
  return state;
}

void RememberInstance(const std::string& path, const std::string& instance_key) {
  if (path.empty()) return;
  if (const absl::Status written = WriteFileAtomically(path, instance_key); !written.ok()) {
    spdlog::warn("{}", std::string(written.message()));
  }
}

}  // namespace hpo::agent
