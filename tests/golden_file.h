// Golden files under tests/golden; a missing or broken one ends the test program.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "common/base/status.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/test_paths.h"

namespace hpo {

inline nlohmann::json ReadGolden(const std::string& name) {
  std::ifstream file(SourcePath("tests/golden/" + name));
  HPO_CHECK(file.good());
  return nlohmann::json::parse(file);
}

// `text` is what the golden file holds. HPO_WRITE_GOLDEN=1 in the environment writes it there.
inline void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = SourcePath("tests/golden/" + name);
  if (std::getenv("HPO_WRITE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str());
}

}  // namespace hpo
