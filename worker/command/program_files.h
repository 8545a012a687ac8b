// Programs that read a trial's parameters without a placeholder in their command.
#pragma once

#include <string>

namespace hpo::command {

// Whether a file that `command` names, a script as a rule, has "HPO_PARAM" in it (ParamVariables):
// a word of the command, relative to this process's folder or to a folder that is a word, too.
// Looks at the first MiB of each.
bool ReadsParamVariables(const std::string& command);

}  // namespace hpo::command
