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
};

int ExitStatusOf(const absl::Status& status);

}  // namespace hpo
