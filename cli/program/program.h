// The `hpo` command line: reads it, runs the command, prints its error as one line.
#pragma once

#include <ostream>

#include "cli/client/terminal.h"

namespace hpo::cli {

// Exit status (common/command_line/exit_status.h). Beyond it:
//   3  `hpo memory estimate` and its like: it does not fit
//   6  `hpo watch --until-finished`: the study is finished and no trial has completed
int RunHpo(int argc, const char* const* argv, const Terminal& terminal, std::ostream& out,
           std::ostream& err);

}  // namespace hpo::cli
