// Exit statuses of the programs, the same for the same kind of failure everywhere.
#pragma once

#include "absl/status/status.h"

namespace hpo {

enum ExitStatus : int {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,  // command line, study file, parameter values
  kExitNotFound = 3,
  kExitConflict = 4,          // changed study, newer database, a request that contradicts another
  kExitUnavailable = 5,       // the server is away
  kExitNothingCompleted = 6,  // a study finished without a completed trial
  kExitStudyFailed = 7,       // failures ended a study
  kExitBlocked = 8,           // nothing more runs unless something is changed
};

// Exit statuses of hpo-worker: what a scheduler of machines should do.
enum class ExitCode : int {
  kDone = 0,         // every study finished, or --max-trials reached, or drained with no work left
  kStudyFailed = 7,  // failures ended the one study that it served (kExitStudyFailed)
  kBlocked = 8,      // it has the data of no running study (kExitBlocked)
  kInternal = 70,    // retry with a limit
  kTryAgain = 75,    // ended while work remains or a result is owed, or no server: run it again
  kUnhealthy = 77,   // the trainer cannot be started: leave this machine out
  kConfiguration = 78,  // do not retry
  kNameTaken = 79,      // another process has the worker's name, and is alive: give another --name
  kKilled = 130,        // a second signal
};

int ExitStatusOf(const absl::Status& status);

}  // namespace hpo
