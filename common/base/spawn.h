// Starts a program in a process group of its own, which a Ctrl-C at the terminal does not reach.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hpo {

struct SpawnRequest {
  std::vector<std::string> argv;  // the program by its path, never searched for, and its arguments
  std::map<std::string, std::string> environment = {};  // put over our own
  int output = -1;  // descriptor that takes its output and errors; -1: ours
  // What it gets when the thread that calls has ended (PR_SET_PDEATHSIG).
  int signal_of_parents_death;
};

// The caller reaps it.
//   NotFound          there is no such program
//   PermissionDenied  it cannot be executed
//   Unavailable       no process can be had at the moment
absl::StatusOr<pid_t> Spawn(const SpawnRequest& request);

}  // namespace hpo
