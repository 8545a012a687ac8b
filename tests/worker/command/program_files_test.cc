#include "worker/command/program_files.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hpo::command {
namespace {

TEST(ProgramFiles, AScriptThatReadsTheVariablesIsFound) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / absl::StrCat("program_files_", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "env.py") << "import os\nlr = os.environ['HPO_PARAM_LR']\n";
  std::ofstream(folder / "other.py") << "print(1)\n";
  EXPECT_TRUE(ReadsParamVariables(absl::StrCat("python3 '", folder.string(), "/env.py' --x")));
  EXPECT_TRUE(ReadsParamVariables(absl::StrCat("cd ", folder.string(), " && python3 env.py")));
  EXPECT_FALSE(ReadsParamVariables(absl::StrCat("cd ", folder.string(), " && python3 other.py")));
  EXPECT_TRUE(ReadsParamVariables("./train --lr $HPO_PARAM_LR"));
  EXPECT_FALSE(ReadsParamVariables("python3 missing.py"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hpo::command
