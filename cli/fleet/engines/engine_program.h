// Programs of engines, such as squeue and kubectl.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hpo::cli {

struct ProgramOutput {
  int status = 0;  // 128 and the signal's number, if a signal ended it
  std::string output;
  std::string errors;
};

struct ProgramCall {
  std::vector<std::string> words;                      // the program and its arguments
  absl::Duration patience = absl::InfiniteDuration();  // after which the program is ended
  std::string if_slow;  // message to the user where it takes seconds; empty: none
};

// Shows the user a line about the progress of a command.
using Notifies = std::function<void(const std::string& text)>;

// Runs a program, which is searched for in PATH, and waits for its end.
//   NotFound          there is no such program
//   DeadlineExceeded  it has not ended in time, and was ended
//   Unavailable       no process or descriptor can be had
using RunsProgram = std::function<absl::StatusOr<ProgramOutput>(const ProgramCall& call)>;

// The one that starts processes. They end with this process.
absl::StatusOr<ProgramOutput> RunEngineProgram(const ProgramCall& call, const Notifies& notify);

// What `program` says went wrong: the last line of its errors, or else of its output, without the
// program's own prefix "NAME: error: ".
std::string ComplaintOf(const std::string& program, const ProgramOutput& ended);

}  // namespace hpo::cli
