#include "sampler/numeric/portable_math.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/golden_file.h"

namespace hpo::sampler {
namespace {

void ExpectGolden(const std::string& name, double (*function)(double)) {
  const auto golden = ReadGolden("portable_math.json");
  ASSERT_FALSE(golden[name].empty());
  for (const auto& row : golden[name]) {
    const double x = row[0];
    const double expected = row[1];
    EXPECT_NEAR(function(x), expected, 4e-15 * std::abs(expected)) << name << "(" << x << ")";
  }
}

TEST(PortableMath, AgreesWithMpmath) {
  ExpectGolden("exp", [](double x) { return Exp(x); });
  ExpectGolden("log", [](double x) { return Log(x); });
  ExpectGolden("log1p", Log1p);
  ExpectGolden("expm1", Expm1);
}

// exp(-a^2) takes the rounding of a^2 along.
TEST(PortableMath, ErfcAgreesWithMpmath) {
  const auto golden = ReadGolden("portable_math.json");
  for (const auto& row : golden["erfc"]) {
    const double x = row[0];
    const double expected = row[1];
    EXPECT_NEAR(Erfc(x), expected, (4e-15 + 3e-16 * x * x) * expected) << x;
  }
}

TEST(PortableMath, NearTheLibraryEverywhere) {
  for (int i = -7000; i < 7000; ++i) {
    const double x = 0.1 * i + 0.0123;
    ASSERT_NEAR(Exp(x), std::exp(x), 1e-15 * std::exp(x)) << x;
    ASSERT_NEAR(Log(std::exp(x)), x, 1e-14 * std::max(1.0, std::abs(x))) << x;
  }
}

TEST(PortableMath, EndsAndNoNumbers) {
  EXPECT_EQ(Exp(0.0), 1.0);
  EXPECT_EQ(Exp(-kUnbounded), 0.0);
  EXPECT_EQ(Exp(-1e300), 0.0);
  EXPECT_EQ(Exp(kUnbounded), kUnbounded);
  EXPECT_EQ(Exp(710.0), kUnbounded);
  EXPECT_TRUE(std::isnan(Exp(std::nan(""))));
  EXPECT_EQ(Log(1.0), 0.0);
  EXPECT_EQ(Log(0.0), -kUnbounded);
  EXPECT_EQ(Log(kUnbounded), kUnbounded);
  EXPECT_TRUE(std::isnan(Log(-1.0)));
  EXPECT_TRUE(std::isnan(Log(std::nan(""))));
  EXPECT_EQ(Erfc(kUnbounded), 0.0);
  EXPECT_EQ(Erfc(-kUnbounded), 2.0);
  EXPECT_EQ(Erfc(0.0), 1.0);
  EXPECT_EQ(Log1p(-1.0), -kUnbounded);
  EXPECT_EQ(Log1p(kUnbounded), kUnbounded);
  EXPECT_EQ(Expm1(-kUnbounded), -1.0);
  EXPECT_EQ(Expm1(kUnbounded), kUnbounded);
}

TEST(PortableMath, ExpDownHasTheBitsOfExp) {
  for (const double x : {0.0, -1e-300, -706.9, -707.0, -707.1, -1e300, -kUnbounded}) {
    EXPECT_EQ(BitsOf(ExpDown(x)), BitsOf(Exp(x))) << x;
  }
  for (double x = -1e-3; x > -710.0; x *= 1.01) {
    ASSERT_EQ(BitsOf(ExpDown(x)), BitsOf(Exp(x))) << x;
  }
  EXPECT_TRUE(std::isnan(ExpDown(std::nan(""))));
}

TEST(PortableMath, EveryLaneHasTheBitsOfOneDouble) {
  for (int i = -400; i < 400; ++i) {
    double x[kNumLanes], exps[kNumLanes], logs[kNumLanes], tails[kNumLanes];
    for (size_t lane = 0; lane < kNumLanes; ++lane) {
      x[lane] = 0.71 * i + 0.013 * static_cast<double>(lane) * i;
    }
    StoreLanes(Exp(LoadLanes(x)), exps);
    StoreLanes(Log(LoadLanes(x)), logs);
    StoreLanes(Erfc(LoadLanes(x)), tails);
    for (size_t lane = 0; lane < kNumLanes; ++lane) {
      EXPECT_EQ(BitsOf(exps[lane]), BitsOf(Exp(x[lane])));
      EXPECT_EQ(BitsOf(tails[lane]), BitsOf(Erfc(x[lane])));
      if (x[lane] >= 0.0) {
        EXPECT_EQ(BitsOf(logs[lane]), BitsOf(Log(x[lane])));
      }
    }
  }
}

}  // namespace
}  // namespace hpo::sampler
