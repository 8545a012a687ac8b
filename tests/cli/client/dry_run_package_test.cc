#include "cli/client/dry_run_package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cli/run_program.h"

namespace hpo::cli {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

// A folder as PATH, with a python3 of the test's own or none. The command replaces its process, so
// it runs in that of a death test.
class MemoryDryRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("hpo-dry-run-" + std::to_string(getpid()) + "-" +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    setenv("PATH", folder_.c_str(), /*overwrite=*/1);
  }
  void TearDown() override {
    setenv("PATH", path_.c_str(), /*overwrite=*/1);
    std::filesystem::remove_all(folder_);
  }

  // `script` sees the words after the package as "$*".
  void WritePython(const std::string& script) const {
    const std::filesystem::path file = folder_ / "python3";
    std::ofstream(file) << "#!/bin/sh\n[ \"$1\" = -c ] && shift\nshift\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  std::filesystem::path folder_;
  const std::string path_ = std::getenv("PATH");
};

TEST_F(MemoryDryRun, PassesEveryWordAfterItOn) {
  WritePython("echo \"got: $*\" >&2; exit 7");
  EXPECT_EXIT(RunProgram({"memory", "dry-run", "--gpu", "a100:12GiB", "--help", "--", "python3",
                          "train.py", "--study", "x", "--server", "memory dry-run", "--"}),
              ExitedWithCode(7),
              "^got: --gpu a100:12GiB --help -- python3 train.py --study x --server memory dry-run "
              "--\n$");
}

TEST_F(MemoryDryRun, TakesItsOwnOptionsBeforeIt) {
  WritePython("echo \"got: $*\" >&2; exit 3");
  EXPECT_EXIT(RunProgram({"--output", "json", "memory", "dry-run", "--gpu", "t4", "--", "a.sh"}),
              ExitedWithCode(3), "^got: --json --gpu t4 -- a.sh\n$");
}

TEST_F(MemoryDryRun, EndsAsTheProgramEnds) {
  WritePython("kill -TERM $$");
  EXPECT_EXIT(RunProgram({"memory", "dry-run"}), KilledBySignal(SIGTERM), "");
}

TEST_F(MemoryDryRun, SaysWhatIsMissing) {
  EXPECT_EXIT(std::exit(RunMemoryDryRun({}).status().code() == absl::StatusCode::kInternal ? 9 : 0),
              ExitedWithCode(9), "");
  const ProgramResult result = RunProgram({"memory", "dry-run"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            "hpo: cannot run python3: No such file or directory; memory dry-run needs it\n");
}

}  // namespace
}  // namespace hpo::cli
