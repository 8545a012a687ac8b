// The commands that are in no group: `hpo run`, `hpo status`, ...
#pragma once

#include "cli/syntax/command.h"

namespace hpo::cli {

Command RunCommand();
Command StatusCommand();
Command ConnectCommand();
Command DoctorCommand();
Command OpenCommand();
Command BestCommand();
Command EnqueueCommand();
Command WatchCommand();

}  // namespace hpo::cli
