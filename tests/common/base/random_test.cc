#include "common/base/random.h"

#include <vector>

#include "gtest/gtest.h"

namespace hpo {
namespace {

// Known answers of the Random123 distribution for philox4x32-10 with counter and key zero.
TEST(Rng, AgreesWithRandom123) {
  Rng rng(0, 0);
  EXPECT_EQ(rng.NextU32(), 0x6627e8d5u);
  EXPECT_EQ(rng.NextU32(), 0xe169c58du);
  EXPECT_EQ(rng.NextU32(), 0xbc57ac4cu);
  EXPECT_EQ(rng.NextU32(), 0x9b00dbd8u);
}

TEST(Rng, StreamsAreIndependentOfOrder) {
  Rng a(7, 1);
  Rng b(7, 2);
  const uint64_t first_of_b = b.NextU64();
  a.NextU64();
  EXPECT_EQ(Rng(7, 2).NextU64(), first_of_b);
  EXPECT_NE(Rng(7, 1).NextU64(), first_of_b);
  EXPECT_NE(Rng(8, 2).NextU64(), first_of_b);
}

TEST(Rng, BelowIsUniform) {
  Rng rng(1, 1);
  std::vector<int> counts(5);
  for (int i = 0; i < 50'000; ++i) ++counts[rng.Below(5)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 400);
}

TEST(Rng, UniformStaysInsideItsRange) {
  Rng rng(3, 9);
  double sum = 0.0;
  for (int i = 0; i < 10'000; ++i) {
    const double draw = rng.Uniform();
    ASSERT_GE(draw, 0.0);
    ASSERT_LT(draw, 1.0);
    sum += draw;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.01);
}

}  // namespace
}  // namespace hpo
