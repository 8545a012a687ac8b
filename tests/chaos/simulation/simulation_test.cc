#include "tests/chaos/simulation/simulation.h"

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"

namespace hpo {
namespace {

class SimulationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    KeepDatabasesInMemory();
  }
};

TEST_F(SimulationTest, NoEpisodeBreaksARule) {
  int64_t told = 0;
  for (const uint64_t seed : {101, 102, 103, 104, 105, 106}) {
    SCOPED_TRACE(seed);
    const EpisodeResult episode = RunEpisode(seed, 1500);
    EXPECT_TRUE(episode.violation.ok()) << episode.violation;
    told += episode.num_told;
  }
  EXPECT_GT(told, 300) << "events that reach no trial prove nothing";
}

TEST_F(SimulationTest, ASeedReplays) {
  const EpisodeResult first = RunEpisode(7, 600);
  const EpisodeResult second = RunEpisode(7, 600);
  EXPECT_GT(first.trace.size(), 300u);
  EXPECT_EQ(absl::StrJoin(first.trace, "\n"), absl::StrJoin(second.trace, "\n"));
  EXPECT_NE(first.trace, RunEpisode(8, 600).trace);
}

}  // namespace
}  // namespace hpo
