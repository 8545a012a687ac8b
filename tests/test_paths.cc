#include "tests/test_paths.h"

namespace hpo {

std::string SourcePath(const std::string& path) { return HPO_SOURCE_DIR "/" + path; }

std::string ProgramPath(const std::string& name) { return HPO_BIN_DIR "/" + name; }

}  // namespace hpo
