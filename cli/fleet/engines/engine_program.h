// Programs of engines, such as squeue and kubectl.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hpo::cli {

struct ProgramOutput {
  int status = 0;  // 128 and the signal's number, if a signal ended it
  std::string output;
  std::string errors;
};

// Runs a program, which is searched for in PATH, with its arguments, and waits for its end.
//   NotFound     there is no such program
//   Unavailable  no process or descriptor can be had
using RunsProgram =
    std::function<absl::StatusOr<ProgramOutput>(const std::vector<std::string>& words)>;

// The one that starts processes. They end with this process.
absl::StatusOr<ProgramOutput> RunEngineProgram(const std::vector<std::string>& words);

// What `program` says went wrong: the last line of its errors, or else of its output, without the
// program's own prefix "NAME: error: ".
std::string ComplaintOf(const std::string& program, const ProgramOutput& ended);

}  // namespace hpo::cli
