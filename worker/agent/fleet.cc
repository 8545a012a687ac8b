#include "worker/agent/fleet.h"

#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace hpo {
namespace {

constexpr char kParentVariable[] = "HPO_WORKER_PARENT";

struct CardWorker {
  pid_t pid;
  UniqueFd exit_fd;
};

// posix_spawn's attributes: an own process group, so that a Ctrl-C at the terminal reaches the
// workers once, through us; and no blocked signals.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

bool Spawn(const std::string& program, const std::vector<std::string>& arguments,
           std::vector<CardWorker>& workers) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const SpawnAttributes attributes;
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, program.c_str(), nullptr, attributes.get(), argv.data(), environ);
  if (error != 0) {
    spdlog::error("cannot start {}: {}", program, strerror(error));
    return false;
  }
  workers.push_back({pid, UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)))});
  return true;
}

int Reap(const CardWorker& worker) {
  int status = 0;
  while (waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void SignalAll(const std::vector<CardWorker>& workers) {
  for (const CardWorker& worker : workers) {
    kill(worker.pid, SIGTERM);
  }
}

// Waits until a worker has ended (its exit code is appended) or `stop` is raised.
void WaitForOne(std::vector<CardWorker>& workers, StopSignal& stop, std::vector<int>& codes) {
  std::vector<pollfd> events = {{.fd = stop.fd(), .events = POLLIN, .revents = 0}};
  for (const CardWorker& worker : workers) {
    events.push_back({.fd = worker.exit_fd.get(), .events = POLLIN, .revents = 0});
  }
  poll(events.data(), events.size(), -1);
  if (events[0].revents != 0) {
    stop.Clear();
    SignalAll(workers);
  }
  for (size_t i = workers.size(); i-- > 0;) {
    if (events[i + 1].revents == 0) continue;
    codes.push_back(Reap(workers[i]));
    workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

ExitCode CombineExitCodes(std::span<const int> codes) {
  constexpr std::array kGravestFirst = {
      ExitCode::kConfiguration, ExitCode::kNameTaken, ExitCode::kUnhealthy,   ExitCode::kInternal,
      ExitCode::kKilled,        ExitCode::kTryAgain,  ExitCode::kStudyFailed, ExitCode::kDone};
  size_t gravest = kGravestFirst.size() - 1;
  for (const int code : codes) {
    const auto known = std::find(kGravestFirst.begin(), kGravestFirst.end(), ExitCode{code});
    const auto rank =
        known == kGravestFirst.end()
            ? std::find(kGravestFirst.begin(), kGravestFirst.end(), ExitCode::kInternal)
            : known;
    gravest = std::min(gravest, static_cast<size_t>(rank - kGravestFirst.begin()));
  }
  return kGravestFirst[gravest];
}

std::vector<std::string> CardArguments(const std::vector<std::string>& own, const GpuState& gpu,
                                       const std::string& name) {
  std::vector<std::string> arguments = own;
  arguments.insert(arguments.end(), {"--gpu", gpu.uuid});
  if (!name.empty()) {
    arguments.insert(arguments.end(), {"--name", absl::StrCat(name, ":gpu", gpu.index)});
  }
  return arguments;
}

ExitCode RunFleet(const std::string& program, const std::vector<std::vector<std::string>>& workers,
                  StopSignal& stop) {
  setenv(kParentVariable, absl::StrCat(getpid()).c_str(), /*replace=*/1);
  std::vector<CardWorker> running;
  std::vector<int> codes;
  for (const std::vector<std::string>& arguments : workers) {
    if (!Spawn(program, arguments, running)) {
      codes.push_back(static_cast<int>(ExitCode::kInternal));
      SignalAll(running);
      break;
    }
  }
  while (!running.empty()) {
    WaitForOne(running, stop, codes);
  }
  return CombineExitCodes(codes);
}

void FollowFleetParent() {
  const char* parent = std::getenv(kParentVariable);
  if (parent == nullptr) return;
  const auto expected = static_cast<pid_t>(std::atoi(parent));
  unsetenv(kParentVariable);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may have died before prctl took effect.
  if (getppid() != expected) {
    kill(getpid(), SIGTERM);
  }
}

}  // namespace hpo
