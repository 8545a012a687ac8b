#include "sampler/simple/sobol_sequence.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"
#include "tests/golden_file.h"

namespace hpo::sampler {
namespace {

// SciPy's points, all dimensions.
TEST(SobolSequence, EqualsTheReference) {
  const auto golden = ReadGolden("sobol.json");
  ASSERT_EQ(golden["dimensions"], kSobolDimensions);
  for (const auto& point : golden["points"]) {
    const uint32_t index = point["index"];
    ASSERT_EQ(point["digits"].size(), kSobolDimensions);
    for (size_t d = 0; d < kSobolDimensions; ++d) {
      ASSERT_EQ(SobolDigits(index, d), point["digits"][d].get<uint32_t>())
          << "point " << index << ", dimension " << d;
    }
  }
}

// Of each aligned block of 2^k points one lies in each of 2^k equal parts of every axis.
TEST(ScrambledSobol, EveryBlockFillsEveryAxis) {
  for (const uint32_t first : {0u, 64u, 1u << 20, 5u << 20}) {
    for (size_t d = 0; d < kSobolDimensions; ++d) {
      std::set<int> parts;
      for (uint32_t i = 0; i < 64; ++i) {
        const double x = ScrambledSobol(7, first + i, d);
        ASSERT_GT(x, 0.0);
        ASSERT_LT(x, 1.0);
        parts.insert(static_cast<int>(x * 64.0));
      }
      ASSERT_EQ(parts.size(), 64u) << "dimension " << d << ", from " << first;
    }
  }
}

// Pairs of the first dimensions are a (0, k, 2)-net: every 8 x 8 box has its point.
TEST(ScrambledSobol, TheFirstTwoAxesTogether) {
  std::set<std::pair<int, int>> boxes;
  for (uint32_t i = 0; i < 64; ++i) {
    boxes.insert({static_cast<int>(ScrambledSobol(3, i, 0) * 8.0),
                  static_cast<int>(ScrambledSobol(3, i, 1) * 8.0)});
  }
  EXPECT_EQ(boxes.size(), 64u);
}

// Each point is uniform over the seeds: its digits are 0 or 1 alike.
TEST(ScrambledSobol, APointIsUniformOverSeeds) {
  constexpr int kSeeds = 4000;
  for (const uint32_t index : {0u, 1u, 17u}) {
    for (const size_t dimension : {size_t{0}, size_t{5}}) {
      double sum = 0.0;
      double squares = 0.0;
      for (uint64_t seed = 0; seed < kSeeds; ++seed) {
        const double x = ScrambledSobol(seed, index, dimension);
        sum += x;
        squares += x * x;
      }
      EXPECT_NEAR(sum / kSeeds, 0.5, 0.02);
      EXPECT_NEAR(squares / kSeeds, 1.0 / 3.0, 0.02);
    }
  }
}

TEST(OwenScramble, FlipsDigitsByTheDigitsBeforeThem) {
  const uint32_t a = OwenScramble(0b1010u << 28, 5);
  const uint32_t b = OwenScramble(0b1011u << 28, 5);
  EXPECT_EQ(a >> 29, b >> 29) << "the first three digits are the same";
  EXPECT_NE(a >> 28, b >> 28) << "the fourth differs before, so it differs after";
  EXPECT_NE(OwenScramble(0, 5), OwenScramble(0, 6));
  EXPECT_EQ(OwenScramble(123, 5), OwenScramble(123, 5));
}

}  // namespace
}  // namespace hpo::sampler
