#include "cli/fleet/fleet_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tests/cli/run_program.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class FleetGroupTest : public testing::Test {
 protected:
  // No engine is installed, and nothing of the user's is read.
  void SetUp() override {
    setenv("PATH", "/nowhere", 1);
    setenv("XDG_STATE_HOME", folder_.path().c_str(), 1);
    unsetenv("HPO_JOIN");
    unsetenv("HPO_JOIN_FILE");
    unsetenv("HPO_STUDY");
  }
  void TearDown() override { setenv("PATH", path_.c_str(), 1); }

  TemporaryFolder folder_;
  const std::string path_ = std::getenv("PATH");
};

TEST_F(FleetGroupTest, PrintsAScriptAndNothingElse) {
  const ProgramResult result = RunProgram({"--server", "127.0.0.1:1", "fleet", "slurm", "--workers",
                                           "8", "--study", "My_Study", "--partition", "gpu",
                                           "--option=--account=a", "--", "--models", "/m"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, testing::StartsWith("#!/bin/bash\n"));
  for (const char* const line :
       {"--job-name=hpo-my-study\n", "#SBATCH --partition=gpu\n#SBATCH --account=a\n",
        "  --study My_Study\n  --models /m\n", "export HPO_SERVER=127.0.0.1:1\n"}) {
    EXPECT_THAT(result.out, HasSubstr(line));
  }
}

TEST_F(FleetGroupTest, ASetupOfSeveralLinesIsEachOfThem) {
  const ProgramResult result =
      RunOffline({"fleet", "slurm", "--workers", "2", "--setup", "module load cuda\nulimit -c 0"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nmodule load cuda\nulimit -c 0\n"));
  EXPECT_THAT(result.out, HasSubstr("--setup 'ulimit -c 0'"));
  EXPECT_EQ(RunOffline({"fleet", "slurm", "--workers", "2", "--setup", "a\rb"}).status, 2);
}

TEST_F(FleetGroupTest, ASecretOfTheEnvironmentStaysOutOfTheScript) {
  setenv("HPO_JOIN", "hpo1.hash.SECRET@host:50051", 1);
  const ProgramResult result = RunOffline({"fleet", "slurm", "--workers", "2"});
  EXPECT_THAT(result.out, HasSubstr("/hpo/fleets/workers/join\n"));
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("SECRET")));
  unsetenv("HPO_JOIN");
  setenv("HPO_JOIN_FILE", "/shared/join", 1);
  EXPECT_THAT(RunOffline({"fleet", "slurm", "--workers", "2"}).out,
              HasSubstr("export HPO_JOIN_FILE=/shared/join\n"));
}

TEST_F(FleetGroupTest, OneWorkerIsNotSeveral) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"fleet", "slurm"},
                                                {"fleet", "ray"},
                                                {"fleet", "kubernetes", "--image", "hpo"},
                                                {"fleet", "sky", "--gpu-type", "A100"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--workers", "1"});
    const ProgramResult result = RunOffline(all);
    EXPECT_THAT(result.out, HasSubstr(": 1 worker of hpo")) << result.err;
  }
}

TEST_F(FleetGroupTest, ABadOptionIsOneLine) {
  ExpectRefused({"fleet", "slurm", "--workers", "0"}, 2, "--workers: expected a number from 1");
  ExpectRefused({"fleet", "slurm"}, 2, "--workers");
  ExpectRefused({"fleet", "slurm", "--workers", "2", "--time", "3"}, 2,
                "--time: expected a duration such as 90m or 8h, got '3'");
  ExpectRefused({"fleet", "slurm", "--workers", "2", "--name", "A b"}, 2, "got 'A b'");
  ExpectRefused({"fleet", "slurm", "--workers", "2", "--gpus-per-worker", "0"}, 2, "--memory");
  ExpectRefused({"fleet", "slurm", "--workers", "2", "--gpus-per-worker", "0", "--memory", "x"}, 2,
                "--memory: ");
  for (const char* const size : {"32", "0", "15MiB"}) {
    ExpectRefused({"fleet", "slurm", "--workers", "2", "--memory", size}, 2,
                  "--memory: expected at least 16.00 MiB, with a unit, such as 32GiB, got '");
  }
  ExpectRefused({"fleet", "slurm", "--workers", "1.5"}, 2,
                "--workers: expected a whole number, got '1.5'");
  ExpectRefused({"fleet", "slurm", "--workers", "2", "--option=account=vision"}, 2,
                "--option: expected an option of sbatch");
  ExpectRefused({"fleet", "slurm", "--workers", "2", "--partition", "a b;rm"}, 2,
                "--partition: expected");
  ExpectRefused({"fleet", "kubernetes", "--workers", "2", "--image", "bad image"}, 2,
                "--image: expected");
  ExpectRefused({"fleet", "ray", "--workers", "2", "--time", "8h"}, 2, "Ray has no time limit");
  ExpectRefused({"fleet", "scale", "toy", "--workers", "0"}, 2, "hpo fleet stop NAME");
  ExpectRefused({"fleet", "stop", "A", "--engine", "slurm"}, 2, "name of a fleet: expected");
  ExpectRefused({"fleet", "stop", "a", "--engine", "slrm"}, 2, "did you mean 'slurm'?");
}

// The words of a line of shell without variables.
std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool is_quoted = false;
  for (const char c : line + " ") {
    if (c == '"') {
      is_quoted = !is_quoted;
    } else if (c == ' ' && !is_quoted) {
      if (!word.empty()) words.push_back(word);
      word.clear();
    } else {
      word += c;
    }
  }
  return words;
}

TEST_F(FleetGroupTest, TheExamplesOfTheHelpAreRight) {
  std::istringstream help(RunProgram({"fleet", "--help"}).out);
  int num_examples = 0;
  for (std::string line; std::getline(help, line);) {
    const size_t begin = line.find("hpo fleet ");
    const bool starts_one = begin != std::string::npos && line.find("--workers") < line.size() &&
                            line.find(" scale ") == std::string::npos;
    if (!starts_one) continue;
    ++num_examples;
    std::vector<std::string> words = WordsOf(line.substr(begin, line.find(" >") - begin));
    words.erase(words.begin());
    const bool submits = line.find("--submit") != std::string::npos;
    words.insert(words.begin(), {"--server", "127.0.0.1:1"});
    const ProgramResult result = RunProgram(words);
    EXPECT_EQ(result.status, submits ? 3 : 0) << line << "\n" << result.err;
  }
  EXPECT_GE(num_examples, 6);
}

TEST_F(FleetGroupTest, AMissingEngineIsOneLine) {
  ExpectRefused({"fleet", "status"}, 3, "no engine of fleets here: expected one of squeue");
  ExpectRefused({"fleet", "status", "--engine", "slurm"}, 3, "squeue is not in PATH");
  ExpectRefused({"fleet", "slurm", "--workers", "2", "--submit"}, 3, "squeue is not in PATH");
}

}  // namespace
}  // namespace hpo::cli
