#include "worker/command/child_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/read_file.h"
#include "common/base/spawn.h"
#include "common/device/host_memory.h"

namespace hpo {
namespace {

// A line without an end, such as a progress bar's, must not fill the memory.
constexpr size_t kLongestLine = 16 << 20;
// A line that is longer is broken after a comma among its last bytes, rather than in a number.
constexpr size_t kCommaWithin = 4096;

// The process group of a process; 0 once it is gone. /proc/PID/stat: "PID (NAME) STATE PPID PGRP".
pid_t GroupOf(const std::string& pid) {
  const absl::StatusOr<std::string> stat = ReadFile("/proc/" + pid + "/stat");
  if (!stat.ok()) return 0;
  const size_t name_end = stat->rfind(") ");
  if (name_end == std::string::npos) return 0;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(*stat).substr(name_end + 2), ' ');
  pid_t group = 0;
  return fields.size() > 2 && absl::SimpleAtoi(fields[2], &group) ? group : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::string& command, const std::map<std::string, std::string>& environment) {
  std::array<int, 2> pipe_ends;
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("pipe: ", strerror(errno)));
  }
  const absl::StatusOr<pid_t> pid = Spawn({.argv = {"/bin/sh", "-c", command},
                                           .environment = environment,
                                           .output = pipe_ends[1],
                                           .signal_of_parents_death = SIGKILL});
  close(pipe_ends[1]);
  if (pid.ok()) return std::unique_ptr<ChildProcess>(new ChildProcess(*pid, pipe_ends[0]));
  close(pipe_ends[0]);
  return pid.status();
}

ChildProcess::~ChildProcess() {
  Signal(SIGKILL);
  Wait();
  close(output_);
}

bool ChildProcess::ReadLines(absl::Duration timeout,
                             const std::function<void(absl::string_view)>& on_line) {
  // A pipe that is closed is readable at once, time and again.
  pollfd readable{.fd = closed_ ? -1 : output_, .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) {
    return !closed_;
  }
  std::array<char, 65536> piece;
  const ssize_t count = read(output_, piece.data(), piece.size());
  if (count < 0) return errno == EINTR;
  if (count == 0) {
    if (!partial_.empty()) on_line(partial_);
    partial_.clear();
    closed_ = true;
    return false;
  }
  const absl::string_view text(piece.data(), static_cast<size_t>(count));
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  TakeLines(text, on_line);
  return true;
}

void ChildProcess::TakeLines(absl::string_view text,
                             const std::function<void(absl::string_view)>& on_line) {
  for (const char c : text) {
    // A progress bar goes back to the beginning of its line.
    const bool ends = c == '\n' || c == '\r';
    if (!ends) partial_ += c;
    if (!ends && partial_.size() < kLongestLine) continue;
    std::string rest;
    if (!ends) {
      const size_t comma = partial_.rfind(',');
      if (comma != std::string::npos && comma + kCommaWithin > partial_.size()) {
        rest = partial_.substr(comma + 1);
        partial_.resize(comma + 1);
      }
    }
    if (!partial_.empty()) on_line(partial_);
    partial_ = std::move(rest);
  }
}

bool ChildProcess::HasEnded() {
  if (reaped_) return true;
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

void ChildProcess::Signal(int signal) {
  if (!reaped_) kill(-pid_, signal);
}

std::vector<pid_t> ChildProcess::Processes() const {
  std::vector<pid_t> group;
  DIR* const processes = opendir("/proc");
  if (processes == nullptr) return group;
  while (const dirent* const entry = readdir(processes)) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry->d_name, &pid) && GroupOf(entry->d_name) == pid_) {
      group.push_back(pid);
    }
  }
  closedir(processes);
  return group;
}

Bytes ChildProcess::Resident() const {
  Bytes total;
  const HostMemoryReader memory;
  for (const pid_t pid : Processes()) {
    const absl::StatusOr<Bytes> resident = memory.ReadResident(pid);
    if (resident.ok()) total += *resident;
  }
  return total;
}

int ChildProcess::Wait() {
  rusage used{};
  while (!reaped_ && wait4(pid_, &status_, 0, &used) < 0 && errno == EINTR) {
  }
  if (!reaped_) largest_resident_ = KiB(used.ru_maxrss);
  reaped_ = true;
  return status_;
}

}  // namespace hpo
