#include "worker/agent/process/stray_processes.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/device/process_tree.h"
#include "common/files/read_file.h"
#include "common/files/write_file.h"
#include "spdlog/spdlog.h"
#include "worker/agent/process/unique_fd.h"

namespace hpo::agent {
namespace {

namespace fs = std::filesystem;

struct Stray {
  pid_t pid;
  UniqueFd fd;
};

bool Carries(pid_t pid, const std::string& variable) {
  // Of others' processes, and of those that are gone, nothing can be read.
  const absl::StatusOr<std::string> environment = ReadFile(absl::StrCat("/proc/", pid, "/environ"));
  if (!environment.ok()) return false;
  for (const absl::string_view entry : absl::StrSplit(*environment, '\0')) {
    if (entry == variable) return true;
  }
  return false;
}

std::vector<Stray> FindStrays(const std::string& mark) {
  const std::string variable = absl::StrCat(kTrainerMarkVariable, "=", mark);
  std::vector<Stray> strays;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &pid) || pid == getpid()) continue;
    if (!Carries(pid, variable)) continue;
    UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    // The number may have gone to another process before it was held.
    if (fd.ok() && Carries(pid, variable)) strays.push_back({pid, std::move(fd)});
  }
  return strays;
}

// Whether it is gone by `deadline`.
bool EndsBy(absl::Duration deadline, const Stray& stray, const Clock& clock) {
  pollfd ended{.fd = stray.fd.get(), .events = POLLIN, .revents = 0};
  const absl::Duration left = std::max(absl::ZeroDuration(), deadline - clock.Monotonic());
  return poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(left))) == 1;
}

// "device:inode": what a copy of the folder does not have.
std::string IdentityOf(const std::string& folder) {
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return "";
  return absl::StrCat(status.st_dev, ":", status.st_ino);
}

}  // namespace

int EndStrayProcesses(const std::string& mark, absl::Duration patience) {
  const SystemClock clock;
  const absl::Duration deadline = clock.Monotonic() + patience;
  std::vector<pid_t> ended;
  // Again until none is found: one may have started another meanwhile.
  for (std::vector<Stray> strays = FindStrays(mark); !strays.empty(); strays = FindStrays(mark)) {
    // All before any is waited for: one that does not end shields none.
    for (const Stray& stray : strays) {
      KillDescendants(stray.pid, stray.fd.get());
      syscall(SYS_pidfd_send_signal, stray.fd.get(), SIGKILL, nullptr, 0);
    }
    for (const Stray& stray : strays) {
      if (!EndsBy(deadline, stray, clock)) {
        spdlog::error(
            "process {}, which a trainer has started, does not end, although it was killed; it may "
            "still hold memory",
            stray.pid);
        return static_cast<int>(ended.size());
      }
      ended.push_back(stray.pid);
    }
  }
  if (!ended.empty()) {
    spdlog::warn("killed processes that a trainer had left running: {}",
                 absl::StrJoin(ended, ", "));
  }
  return static_cast<int>(ended.size());
}

std::string RenewTrainerMark(const std::string& state_folder, const std::string& name) {
  const std::string path = absl::StrCat(state_folder, "/", name);
  const std::string identity = IdentityOf(state_folder);
  const absl::StatusOr<std::string> kept = ReadFile(path);
  const std::vector<std::string> words =
      absl::StrSplit(kept.value_or(""), absl::ByAnyChar(" \n"), absl::SkipEmpty());
  if (words.size() == 2 && words[1] == identity) EndStrayProcesses(words[0]);
  std::string mark = RandomId();
  const absl::Status written = WriteFileAtomically(path, absl::StrCat(mark, " ", identity, "\n"));
  if (!written.ok()) {
    spdlog::warn("{}", std::string(written.message()));
  }
  return mark;
}

}  // namespace hpo::agent
