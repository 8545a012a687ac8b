// Reads a golden file under tests/golden; a missing or broken one ends the test program.
#pragma once

#include <fstream>
#include <string>

#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "tests/test_paths.h"

namespace hpo {

inline nlohmann::json ReadGolden(const std::string& name) {
  std::ifstream file(SourcePath("tests/golden/" + name));
  HPO_CHECK(file.good());
  return nlohmann::json::parse(file);
}

}  // namespace hpo
