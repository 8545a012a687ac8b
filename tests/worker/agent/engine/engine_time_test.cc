#include "worker/agent/engine/engine_time.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::agent {
namespace {

using Environment = std::map<std::string, std::string>;

const absl::Time kAskedAt = absl::FromUnixSeconds(1'800'000'000);

std::optional<absl::Duration> LeftIn(const Environment& environment) {
  return EngineTimeLeft(
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
      },
      kAskedAt);
}

// A program named squeue stands first in PATH.
class EngineTimeTest : public ::testing::Test {
 protected:
  EngineTimeTest() : path_(std::getenv("PATH")) {}
  ~EngineTimeTest() override { setenv("PATH", path_.c_str(), 1); }

  void PutSqueue(const std::string& script) {
    const std::string file = folder_.path() + "/squeue";
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    chmod(file.c_str(), 0755);
    setenv("PATH", absl::StrCat(folder_.path(), ":", path_).c_str(), 1);
  }

  const std::string path_;
  TemporaryFolder folder_;
};

TEST(ParseSqueueTime, ReadsWhatSqueuePrints) {
  const std::pair<std::string, absl::Duration> cases[] = {
      {"4:05", absl::Minutes(4) + absl::Seconds(5)},
      {"0:00", absl::ZeroDuration()},
      {"3:04:05", absl::Hours(3) + absl::Minutes(4) + absl::Seconds(5)},
      {"2-03:04:05", absl::Hours(51) + absl::Minutes(4) + absl::Seconds(5)},
      {"UNLIMITED", absl::InfiniteDuration()},
      {"NOT_SET", absl::InfiniteDuration()},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    ASSERT_TRUE(ParseSqueueTime(text).ok());
    EXPECT_EQ(*ParseSqueueTime(text), expected);
  }
  for (const char* text :
       {"", "INVALID", "12", "1:2:3:4", "a-1:00", "1:-2", "slurm_load_jobs error"}) {
    SCOPED_TRACE(text);
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSqueueTime(text).status()));
  }
}

TEST_F(EngineTimeTest, IsTheEndThatSlurmWritesIntoTheEnvironment) {
  PutSqueue("echo 1:00");
  EXPECT_EQ(LeftIn({{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_END_TIME", "1800000090"}}),
            absl::Seconds(90));
}

TEST_F(EngineTimeTest, IsWhatSqueueSaysOfTheJobOtherwise) {
  PutSqueue("test \"$*\" = '-h -j 12 -o %L' && echo 1:30");
  EXPECT_EQ(LeftIn({{"SLURM_JOB_ID", "12"}}), absl::Seconds(90));
  PutSqueue("echo UNLIMITED");
  EXPECT_EQ(LeftIn({{"SLURM_JOB_ID", "12"}}), absl::InfiniteDuration());
}

// A clock that is wrong by a year must not end every worker at its start.
TEST_F(EngineTimeTest, DoesNotBelieveAnEndThatIsOver) {
  PutSqueue("echo 1:30");
  EXPECT_EQ(LeftIn({{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_END_TIME", "1700000000"}}),
            absl::Seconds(90));
}

TEST_F(EngineTimeTest, NobodyTells) {
  EXPECT_EQ(LeftIn({}), std::nullopt);
  EXPECT_EQ(LeftIn({{"SLURM_JOB_END_TIME", "1800000090"}}), std::nullopt) << "of which job?";
  PutSqueue("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1");
  EXPECT_EQ(LeftIn({{"SLURM_JOB_ID", "12"}}), std::nullopt);
  EXPECT_EQ(LeftIn({{"SLURM_JOB_ID", "12; touch /tmp/x"}}), std::nullopt);
  setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(LeftIn({{"SLURM_JOB_ID", "12"}}), std::nullopt);
}

}  // namespace
}  // namespace hpo::agent
