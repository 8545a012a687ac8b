// Where a test program finds the tree and the programs that were built with it. One source file
// knows the absolute paths, so that all others compile to the same in every checkout, and ccache
// serves a second one from the first.
#pragma once

#include <string>

namespace hpo {

// `path`, from the repository's root, as an absolute path.
std::string SourcePath(const std::string& path);

// The absolute path of a built program.
std::string ProgramPath(const std::string& name);

}  // namespace hpo
