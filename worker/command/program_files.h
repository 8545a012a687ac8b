// What programs get of a trial besides their command line: variables and files.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/protocol/trainer_protocol.h"
#include "worker/command/command_template.h"

namespace hpo::command {

// Whether a file that `command` names, a script as a rule, has "HPO_PARAM" in it (ParamVariables):
// a word of the command, relative to this process's folder or to a folder that is a word, too.
// Looks at the first MiB of each.
bool ReadsParamVariables(const std::string& command);

// Variables that are put over our own: the trial's parameters (ParamVariables), HPO_OUTPUT_DIR, and
// what makes a program print at once and take no more of a GPU than it needs.
std::map<std::string, std::string> ProgramEnvironment(const TrainerJob& job);

// Writes the configuration files that `command` names. `values`: JobValues.
//   as WriteFileAtomically
absl::Status WriteConfigs(const CommandTemplate& command, const TrainerJob& job,
                          const std::map<std::string, std::string>& values);

}  // namespace hpo::command
