#include "cli/dryrun/dry_run_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/spawn.h"

namespace hpo::cli {
namespace {

// Finds a program in PATH.
constexpr char kEnv[] = "/usr/bin/env";
constexpr absl::Duration kGrace = absl::Seconds(10);

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

int Reap(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

DryRunPool::~DryRunPool() {
  for (const Running& run : running_) kill(run.pid, SIGTERM);
  const absl::Time deadline = absl::Now() + kGrace;
  for (const Running& run : running_) {
    pollfd end{.fd = run.fd, .events = POLLIN, .revents = 0};
    while (poll(&end, 1, Milliseconds(std::max(deadline - absl::Now(), absl::ZeroDuration()))) <
               0 &&
           errno == EINTR) {
    }
    if (end.revents == 0) kill(run.pid, SIGKILL);
    Reap(run.pid);
    close(run.fd);
  }
}

absl::Status DryRunPool::Start(size_t id, const std::vector<std::string>& words,
                               const std::map<std::string, std::string>& environment,
                               const std::string& output) {
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return FileError(errno, output);
  SpawnRequest request{.argv = {kEnv},
                       .environment = environment,
                       .output = file,
                       .signal_of_parents_death = SIGTERM};
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  const absl::StatusOr<WatchedProcess> process = SpawnWatched(request);
  close(file);
  HPO_RETURN_IF_ERROR(process.status());
  running_.push_back(
      {.id = id, .pid = process->pid, .fd = process->fd, .output = output, .started = absl::Now()});
  return absl::OkStatus();
}

std::optional<EndedRun> DryRunPool::Wait(int events, absl::Duration timeout) {
  std::vector<pollfd> waited;
  for (const Running& run : running_) {
    waited.push_back({.fd = run.fd, .events = POLLIN, .revents = 0});
  }
  waited.push_back({.fd = events, .events = POLLIN, .revents = 0});
  if (poll(waited.data(), waited.size(), Milliseconds(timeout)) <= 0) return std::nullopt;
  for (size_t i = 0; i < running_.size(); ++i) {
    if (waited[i].revents == 0) continue;
    const Running run = running_[i];
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
    EndedRun ended{.id = run.id, .status = Reap(run.pid), .output = {}, .duration = {}};
    close(run.fd);
    ended.duration = absl::Now() - run.started;
    ended.output = ReadFile(run.output).value_or("");
    return ended;
  }
  return std::nullopt;
}

}  // namespace hpo::cli
