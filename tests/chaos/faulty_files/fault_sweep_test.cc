#include "tests/chaos/faulty_files/fault_sweep.h"

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "spdlog/spdlog.h"
#include "tests/chaos/simulation/simulation.h"

namespace hpo {
namespace {

class FaultSweepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    KeepDatabasesInMemory();
  }
};

TEST_F(FaultSweepTest, TheServerRecoversFromEveryFault) {
  const SweepResult swept = SweepFaults({.stride = 5, .num_trials = 6});
  EXPECT_EQ(absl::StrJoin(swept.not_recovered, "\n"), "");
  EXPECT_GT(swept.num_studies, 100);
  EXPECT_GT(swept.num_failed_calls, swept.num_studies / 2) << "faults that nobody meets";
}

}  // namespace
}  // namespace hpo
