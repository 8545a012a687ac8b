// Tested by tests/worker/command/run_command_test.cc.
#include "worker/command/child_process.h"

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

#include "absl/strings/str_cat.h"
#include "common/device/host_memory.h"
#include "common/device/process_tree.h"
#include "common/files/spawn.h"

namespace hpo::command {
namespace {

volatile std::sig_atomic_t termination_seen = 0;

// A line without an end, such as a progress bar's, must not fill the memory.
constexpr size_t kLongestLine = 16 << 20;
// A line that is longer is broken after a comma among its last bytes, rather than in a number.
constexpr size_t kCommaWithin = 4096;

// As the kernel may take to end one that waits for a device or a file system.
constexpr absl::Duration kKillPatience = absl::Seconds(10);

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::string& command, const std::map<std::string, std::string>& environment) {
  AdoptOrphans();
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
  End();
  close(output_);
}

bool ChildProcess::ReadLines(absl::Duration timeout, const OnLine& on_line) {
  // A pipe that is closed is readable at once, time and again.
  pollfd readable{.fd = closed_ ? -1 : output_, .events = POLLIN, .revents = 0};
  if (poll(&readable, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) {
    return !closed_;
  }
  std::array<char, 65536> piece;
  const ssize_t count = read(output_, piece.data(), piece.size());
  if (count < 0) return errno == EINTR;
  if (count == 0) {
    if (!partial_.empty()) on_line(partial_, /*overwritten=*/false);
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

void ChildProcess::TakeLines(absl::string_view text, const OnLine& on_line) {
  for (size_t i = 0; i < text.size(); ++i) {
    // A progress bar goes back to the beginning of its line.
    const bool returns = text[i] == '\r';
    const bool ends = text[i] == '\n' || returns;
    if (!ends) partial_ += text[i];
    if (!ends && partial_.size() < kLongestLine) continue;
    const bool overwritten = returns && text.substr(i + 1, 1) != "\n";
    std::string rest;
    if (!ends) {
      const size_t comma = partial_.rfind(',');
      if (comma != std::string::npos && comma + kCommaWithin > partial_.size()) {
        rest = partial_.substr(comma + 1);
        partial_.resize(comma + 1);
      }
    }
    if (!partial_.empty()) on_line(partial_, overwritten);
    partial_ = std::move(rest);
  }
}

bool ChildProcess::HasEnded() {
  if (reaped_) return true;
  siginfo_t ended{};
  const auto any_has_ended = [&ended] {
    ended = {};
    return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0;
  };
  // Orphans that were adopted: nobody else reaps them.
  while (any_has_ended() && ended.si_pid != pid_) waitpid(ended.si_pid, nullptr, WNOHANG);
  return ended.si_pid == pid_;
}

void ChildProcess::Signal(int signal) {
  if (!reaped_) kill(-pid_, signal);
}

Bytes ChildProcess::Resident() const {
  Bytes total;
  const HostMemoryReader memory;
  for (const pid_t pid : Descendants(getpid())) {
    const absl::StatusOr<Bytes> resident = memory.ReadResident(pid);
    if (resident.ok()) total += *resident;
  }
  return total;
}

int ChildProcess::End() {
  if (reaped_) return status_;
  Signal(SIGKILL);
  rusage used{};
  while (wait4(pid_, &status_, 0, &used) < 0 && errno == EINTR) {
  }
  largest_resident_ = KiB(used.ru_maxrss);
  reaped_ = true;
  EndOwnDescendants(kKillPatience);
  return status_;
}

void NoteTermination() {
  struct sigaction action {};
  // A handler, as exec resets it, unlike SIG_IGN.
  action.sa_handler = [](int) { termination_seen = 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

bool TerminationSeen() { return termination_seen != 0; }

}  // namespace hpo::command
