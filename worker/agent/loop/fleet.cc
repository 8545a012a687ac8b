// Tested by tests/worker/agent/device_choice_test.cc.
#include "worker/agent/loop/fleet.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "common/files/spawn.h"
#include "spdlog/spdlog.h"
#include "worker/agent/device/select_gpu.h"

namespace hpo::agent {
namespace {

struct CardWorker {
  pid_t pid;
  UniqueFd exit_fd;
};

int Reap(const CardWorker& worker) {
  int status = 0;
  while (waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool StartWorker(const std::string& program, const std::vector<std::string>& arguments,
                 std::vector<CardWorker>& workers) {
  SpawnRequest request{.argv = {program}, .signal_of_parents_death = SIGTERM};
  request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
  const absl::StatusOr<WatchedProcess> worker = SpawnWatched(request);
  if (!worker.ok()) {
    spdlog::error("cannot start a worker: {}", std::string(worker.status().message()));
    return false;
  }
  workers.push_back({worker->pid, UniqueFd(worker->fd)});
  return true;
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
      ExitCode::kConfiguration, ExitCode::kNameTaken,   ExitCode::kUnhealthy,
      ExitCode::kInternal,      ExitCode::kKilled,      ExitCode::kTryAgain,
      ExitCode::kBlocked,       ExitCode::kStudyFailed, ExitCode::kDone};
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

std::vector<std::string> GpuArguments(const std::vector<std::string>& own,
                                      std::span<const GpuState> gpus, const std::string& name) {
  std::vector<std::string> arguments = own;
  arguments.insert(arguments.end(), {"--gpu", UuidsOf(gpus)});
  if (!name.empty()) arguments.insert(arguments.end(), {"--name", name});
  return arguments;
}

std::vector<std::string> CpuArguments(const std::vector<std::string>& own, const std::string& name,
                                      int number) {
  std::vector<std::string> arguments = own;
  arguments.insert(arguments.end(), {"--workers", "1", "--name", absl::StrCat(name, ":", number)});
  return arguments;
}

ExitCode RunFleet(const std::string& program, const std::vector<std::vector<std::string>>& workers,
                  StopSignal& stop) {
  std::vector<CardWorker> running;
  std::vector<int> codes;
  for (const std::vector<std::string>& arguments : workers) {
    if (!StartWorker(program, arguments, running)) {
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

}  // namespace hpo::agent
