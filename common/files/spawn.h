// Starts a program in a process group of its own, which a Ctrl-C at the terminal does not reach;
// and what every start of one needs, and its end.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo {

// "NAME=value" for each variable of our own environment but those that `left_out` says, `changes`
// put over it.
std::vector<std::string> MergedEnvironment(
    const std::map<std::string, std::string>& changes,
    absl::FunctionRef<bool(absl::string_view name)> left_out = [](absl::string_view) {
      return false;
    });

// What execve() takes. They live as long as `strings`.
std::vector<char*> ExecPointers(const std::vector<std::string>& strings);

struct SpawnRequest {
  std::vector<std::string> argv;  // the program by its path, never searched for, and its arguments
  std::map<std::string, std::string> environment = {};  // put over our own
  int output = -1;  // descriptor that takes its output and errors; -1: ours
  int errors = -1;  // descriptor that takes its errors; -1: they go where its output goes
  // What it gets when the thread that calls has ended (PR_SET_PDEATHSIG).
  int signal_of_parents_death;
};

// The caller reaps it.
//   NotFound          there is no such program
//   PermissionDenied  it cannot be executed
//   Unavailable       no process can be had at the moment
absl::StatusOr<pid_t> Spawn(const SpawnRequest& request);

struct WatchedProcess {
  pid_t pid;
  int fd;  // a pidfd, the caller's: readable once the process has ended
};

// The same; a process whose end could not be seen gets the signal of its parent's death, and is
// waited for.
//   see Spawn, and
//   Unavailable  no descriptor can be had, or Linux is older than 5.3
absl::StatusOr<WatchedProcess> SpawnWatched(const SpawnRequest& request);

// "SIGSEGV"; "signal 64" for one without a name.
std::string SignalName(int signal);

}  // namespace hpo
