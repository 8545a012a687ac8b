// The Python package hpo_dryrun (python/dryrun), which runs programs on an emulated GPU.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hpo {

// The words that run it, before its own: python3, which is to be searched for in PATH, and the
// package next to the installed program or in the build folder; where it is in neither, a script
// that looks for it in Python's path, and else says in one line, which begins with `caller`, that
// it is missing, and exits with status 1.
std::vector<std::string> DryRunCommand(absl::string_view caller);

// Why the package failed, by what it printed: the last line, without its name before it; empty
// where it printed nothing.
std::string DryRunComplaint(absl::string_view output);

}  // namespace hpo
