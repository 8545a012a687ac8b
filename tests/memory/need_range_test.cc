#include "gtest/gtest.h"
#include "memory/need/memory_replay.h"
#include "tests/memory/random_input.h"

namespace hpo::memory {
namespace {

// Seeds 1 to 20,000 are all inside too, at the date of the ratios.
TEST(NeedRange, HoldsTheReplaysOfRandomTrials) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const auto [input, plan] = DrawTrial(seed);
    const NeedRange range = NeedRangeOf(*EstimateMemory(input, plan));
    const Bytes need = ReplayMemory(input, plan)->needed_limit;
    EXPECT_LE(range.least, need);
    EXPECT_GE(range.most, need);
  }
}

}  // namespace
}  // namespace hpo::memory
