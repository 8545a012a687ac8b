// Where the user's own files lie, by the XDG base directory specification, and the running program.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hpo {

// $VARIABLE, else `below_home` in $HOME: ("XDG_CACHE_HOME", ".cache"). Empty where neither is set.
std::string UserFolder(const char* variable, absl::string_view below_home);

// Folder of the running program, links followed; empty where the kernel does not tell.
std::string ProgramFolder();

// The path of our program `name` in ProgramFolder(); `name` alone, for PATH, where it is not there.
std::string OwnProgram(const std::string& name);

}  // namespace hpo
