#include "worker/agent/process/trainer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "common/device/process_tree.h"
#include "common/files/read_file.h"
#include "common/files/spawn.h"
#include "common/protocol/trainer_protocol.h"
#include "spdlog/spdlog.h"
#include "worker/agent/process/stray_processes.h"

namespace hpo::agent {
namespace {

// Everything the child touches between vfork and exec, prepared by the parent: the child shares the
// parent's memory and may only make system calls.
struct ChildPlan {
  const char* program;
  char* const* argv;
  char* const* environment;
  int socket;
  int log;
  int null;
  pid_t parent;
  int signal_of_parents_death;
  volatile int exec_error = 0;  // errno of the exec that failed
};

// Runs in the child. Never returns.
[[noreturn]] void BecomeTrainer(ChildPlan& plan) {
  setsid();
  prctl(PR_SET_PDEATHSIG, plan.signal_of_parents_death);
  // The parent may have died before prctl took effect; then nobody would kill us.
  if (getppid() != plan.parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  // Batch systems send their warnings to every process of a job; they are meant for the worker.
  signal(SIGUSR1, SIG_IGN);
  signal(SIGUSR2, SIG_IGN);
  dup2(plan.null, STDIN_FILENO);
  dup2(plan.log, STDOUT_FILENO);
  dup2(plan.log, STDERR_FILENO);
  dup2(plan.socket, kTrainerProtocolFd);
  syscall(SYS_close_range, kTrainerProtocolFd + 1, ~0U, 0);
  execve(plan.program, plan.argv, plan.environment);
  plan.exec_error = errno;
  _exit(127);
}

// Kept apart from everything with destructors: no frame of the parent may be unwound by the child.
__attribute__((noinline)) pid_t SpawnChild(ChildPlan& plan) {
  const pid_t pid = vfork();
  if (pid == 0) BecomeTrainer(plan);
  return pid;
}

// Whether a variable holds a token of ours: HPO_TOKEN, HPO_SERVER_TOKEN.
bool IsOwnToken(absl::string_view name) {
  return absl::StartsWith(name, "HPO_") && absl::EndsWith(name, "_TOKEN");
}

// A copy of `fd` above the descriptors that the child's dup2 calls write to; none of none, errno as
// it was.
UniqueFd AboveStandard(const UniqueFd& fd) {
  if (!fd.ok()) return UniqueFd();
  return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, kTrainerProtocolFd + 1));
}

absl::Status SystemError(absl::string_view what, int error) {
  return absl::Status(
      hpo::MayPass(error) ? absl::StatusCode::kUnavailable : absl::StatusCode::kInternal,
      absl::StrCat("trainer: ", what, ": ", strerror(error)));
}

absl::Status ExecError(const std::string& program, int error) {
  const absl::Status failed = SystemError(absl::StrCat("cannot execute '", program, "'"), error);
  if (error == ENOENT && absl::EndsWith(program, "/hpo-trainer")) {
    return absl::NotFoundError(absl::StrCat(
        failed.message(), "; install hpo-trainer there, or give --trainer a program of your own"));
  }
  if (error == ENOENT) return absl::NotFoundError(failed.message());
  if (error == EACCES) return absl::PermissionDeniedError(failed.message());
  return failed;
}

ProcessExit FromWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {.code = std::nullopt, .signal = WTERMSIG(status)};
  return {.code = WEXITSTATUS(status), .signal = std::nullopt};
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainerProcess>> TrainerProcess::Start(
    const TrainerCommand& command) {
  if (command.argv.empty()) return absl::InvalidArgumentError("trainer: expected a command");
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return SystemError("socketpair", errno);
  }
  UniqueFd ours(pair[0]);
  const UniqueFd theirs = AboveStandard(UniqueFd(pair[1]));
  if (!theirs.ok()) return SystemError("socketpair", errno);
  const UniqueFd log = AboveStandard(
      UniqueFd(open(command.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)));
  if (!log.ok()) return SystemError(absl::StrCat("log file ", command.log_path), errno);
  const UniqueFd null = AboveStandard(UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)));
  if (!null.ok()) return SystemError("/dev/null", errno);

  std::map<std::string, std::string> changes = command.environment;
  if (!command.mark.empty()) changes[kTrainerMarkVariable] = command.mark;
  const std::vector<std::string> environment = MergedEnvironment(changes, IsOwnToken);
  const std::vector<char*> argv_pointers = ExecPointers(command.argv);
  const std::vector<char*> environment_pointers = ExecPointers(environment);
  ChildPlan plan{.program = command.argv[0].c_str(),
                 .argv = argv_pointers.data(),
                 .environment = environment_pointers.data(),
                 .socket = theirs.get(),
                 .log = log.get(),
                 .null = null.get(),
                 .parent = getpid(),
                 .signal_of_parents_death = command.signal_of_parents_death};
  const pid_t pid = SpawnChild(plan);
  if (pid < 0) return SystemError("vfork", errno);
  if (plan.exec_error != 0) {
    waitpid(pid, nullptr, 0);
    return ExecError(command.argv[0], plan.exec_error);
  }
  UniqueFd exit_fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!exit_fd.ok()) {
    const int error = errno;
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return SystemError("pidfd_open (Linux 5.3 or newer is needed)", error);
  }
  return std::unique_ptr<TrainerProcess>(
      new TrainerProcess(pid, std::move(exit_fd), std::move(ours), command));
}

TrainerProcess::TrainerProcess(pid_t pid, UniqueFd exit_fd, UniqueFd socket,
                               const TrainerCommand& command)
    : pid_(pid),
      exit_fd_(std::move(exit_fd)),
      channel_(std::move(socket)),
      log_path_(command.log_path),
      mark_(command.mark) {}

TrainerProcess::~TrainerProcess() { Kill(); }

// Not reaped yet (WNOWAIT): while the leader is a zombie its number cannot be given to another
// group, so a kill then reaches only what the trainer left behind.
bool TrainerProcess::HasEnded() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

std::optional<ProcessExit> TrainerProcess::Poll() {
  if (!exit_ && HasEnded()) Kill();
  return exit_;
}

void TrainerProcess::AwaitEnd(absl::Duration timeout) const {
  pollfd ended{.fd = exit_fd_.get(), .events = POLLIN, .revents = 0};
  poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
}

std::optional<ProcessExit> TrainerProcess::WaitFor(absl::Duration timeout) {
  if (exit_) return exit_;
  AwaitEnd(timeout);
  return Poll();
}

std::optional<ProcessExit> TrainerProcess::Kill() {
  if (exit_) return exit_;
  const bool forced = !HasEnded();
  if (forced && killed_) return std::nullopt;
  killed_ = true;
  if (forced) KillDescendants(pid_, exit_fd_.get());
  kill(-pid_, SIGKILL);
  if (forced) AwaitEnd(kKillPatience);
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_ = FromWaitStatus(status);
  } else {
    spdlog::error("the trainer (pid {}) did not end after SIGKILL; it may still hold memory", pid_);
  }
  if (!mark_.empty()) EndStrayProcesses(mark_);
  return exit_;
}

}  // namespace hpo::agent
