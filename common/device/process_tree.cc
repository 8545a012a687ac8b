#include "common/device/process_tree.h"

#include <dirent.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/files/read_file.h"

namespace hpo {
namespace {

// The parent of a process; 0 once it is gone or has ended. /proc/PID/stat: "PID (NAME) STATE PPID".
pid_t ParentOf(const std::string& pid) {
  const absl::StatusOr<std::string> stat = ReadFile("/proc/" + pid + "/stat");
  if (!stat.ok()) return 0;
  const size_t name_end = stat->rfind(") ");
  if (name_end == std::string::npos) return 0;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*stat).substr(name_end + 2), absl::MaxSplits(' ', 2));
  pid_t parent = 0;
  const bool runs = fields.size() > 2 && fields[0] != "Z" && fields[0] != "X";
  return runs && absl::SimpleAtoi(fields[1], &parent) ? parent : 0;
}

std::multimap<pid_t, pid_t> ProcessesByParent() {
  std::multimap<pid_t, pid_t> by_parent;
  DIR* const processes = opendir("/proc");
  if (processes == nullptr) return by_parent;
  while (const dirent* const entry = readdir(processes)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    if (const pid_t parent = ParentOf(entry->d_name); parent != 0) by_parent.emplace(parent, pid);
  }
  closedir(processes);
  return by_parent;
}

bool HasEnded(int pidfd) {
  pollfd ended{.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&ended, 1, /*timeout=*/0) == 1;
}

// SIGKILL by the descriptors of the processes, since a number may have gone to another process
// before it is held: it is then no descendant any more. Returns those of the killed, to be closed.
// `pidfd`: of the ancestor, whose number may have gone as well once it has ended; -1: this process.
std::vector<pollfd> KillHeld(pid_t ancestor, int pidfd, const std::vector<pid_t>& processes) {
  std::vector<std::pair<pid_t, int>> held;
  for (const pid_t pid : processes) {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (fd >= 0) held.emplace_back(pid, fd);
  }
  const std::vector<pid_t> still = Descendants(ancestor);
  const bool over = HasEnded(pidfd);
  std::vector<pollfd> killed;
  for (const auto& [pid, fd] : held) {
    if (over || std::find(still.begin(), still.end(), pid) == still.end()) {
      close(fd);
      continue;
    }
    syscall(SYS_pidfd_send_signal, fd, SIGKILL, nullptr, 0);
    killed.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  }
  return killed;
}

void ReapChildren() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<pid_t> Descendants(pid_t ancestor) {
  const std::multimap<pid_t, pid_t> by_parent = ProcessesByParent();
  std::vector<pid_t> found = {ancestor};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = by_parent.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

void KillDescendants(pid_t ancestor, int pidfd) {
  for (const pollfd& killed : KillHeld(ancestor, pidfd, Descendants(ancestor))) close(killed.fd);
}

void EndOwnDescendants(absl::Duration patience) {
  const pid_t self = getpid();
  const absl::Time deadline = absl::Now() + patience;
  bool over = false;
  for (std::vector<pid_t> left = Descendants(self); !left.empty() && !over;
       left = Descendants(self)) {
    for (pollfd& killed : KillHeld(self, /*pidfd=*/-1, left)) {
      const absl::Duration time = std::max(absl::ZeroDuration(), deadline - absl::Now());
      over |= poll(&killed, 1, static_cast<int>(absl::ToInt64Milliseconds(time))) != 1;
      close(killed.fd);
    }
    ReapChildren();
  }
  ReapChildren();
}

}  // namespace hpo
