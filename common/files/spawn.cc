// Tested by tests/server/leases/lost_worker_test.cc.
#include "common/files/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/read_file.h"

namespace hpo {
namespace {

// All that the child needs between fork and exec, where it may only make system calls.
struct Plan {
  char* const* argv;
  char* const* environment;
  int output;
  int error_output;
  int signal_of_parents_death;
  pid_t parent;
  int errors;  // takes the errno of an exec that failed
};

[[noreturn]] void BecomeProgram(const Plan& plan) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, plan.signal_of_parents_death);
  // The parent may have died before prctl took effect.
  if (getppid() != plan.parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  if (plan.output >= 0) {
    dup2(plan.output, STDOUT_FILENO);
    dup2(plan.output, STDERR_FILENO);
  }
  if (plan.error_output >= 0) dup2(plan.error_output, STDERR_FILENO);
  execve(plan.argv[0], plan.argv, plan.environment);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(plan.errors, &error, sizeof error);
  _exit(127);
}

}  // namespace

std::vector<std::string> MergedEnvironment(
    const std::map<std::string, std::string>& changes,
    absl::FunctionRef<bool(absl::string_view name)> left_out) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (!changes.contains(name) && !left_out(name)) merged.push_back(text);
  }
  for (const auto& [name, value] : changes) merged.push_back(absl::StrCat(name, "=", value));
  return merged;
}

std::vector<char*> ExecPointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) {
    pointers.push_back(const_cast<char*>(string.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<pid_t> Spawn(const SpawnRequest& request) {
  const std::vector<std::string> environment = MergedEnvironment(request.environment);
  const std::vector<char*> argv_pointers = ExecPointers(request.argv);
  const std::vector<char*> environment_pointers = ExecPointers(environment);
  std::array<int, 2> errors;
  if (pipe2(errors.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError(absl::StrCat("pipe: ", strerror(errno)));
  }
  const Plan plan{.argv = argv_pointers.data(),
                  .environment = environment_pointers.data(),
                  .output = request.output,
                  .error_output = request.errors,
                  .signal_of_parents_death = request.signal_of_parents_death,
                  .parent = getpid(),
                  .errors = errors[1]};
  const pid_t pid = fork();
  if (pid == 0) BecomeProgram(plan);
  const int fork_error = errno;
  close(errors[1]);
  int exec_error = 0;
  ssize_t told = 0;
  while (pid > 0 && (told = read(errors[0], &exec_error, sizeof exec_error)) < 0 &&
         errno == EINTR) {
  }
  close(errors[0]);
  if (pid < 0) return absl::UnavailableError(absl::StrCat("fork: ", strerror(fork_error)));
  if (told == 0) return pid;
  waitpid(pid, nullptr, 0);
  return FileError(exec_error, request.argv[0]);
}

absl::StatusOr<WatchedProcess> SpawnWatched(const SpawnRequest& request) {
  HPO_ASSIGN_OR_RETURN(const pid_t pid, Spawn(request));
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd >= 0) return WatchedProcess{.pid = pid, .fd = fd};
  const int error = errno;
  kill(pid, request.signal_of_parents_death);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return absl::UnavailableError(
      absl::StrCat("pidfd_open (Linux 5.3 or newer is needed): ", strerror(error)));
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  if (name == nullptr) return absl::StrCat("signal ", signal);
  return absl::StrCat("SIG", name);
}

}  // namespace hpo
