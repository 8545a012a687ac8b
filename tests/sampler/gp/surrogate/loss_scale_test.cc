#include "sampler/gp/surrogate/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace hpo::sampler {
namespace {

std::vector<double> Normalized(const std::vector<double>& losses) {
  return NormalizeLosses(losses, StartingReference(losses));
}

void ExpectStandard(const std::vector<double>& values) {
  double sum = 0.0;
  double squares = 0.0;
  for (const double value : values) {
    ASSERT_TRUE(std::isfinite(value));
    sum += value;
    squares += value * value;
  }
  const double count = static_cast<double>(values.size());
  EXPECT_NEAR(sum / count, 0.0, 1e-9);
  EXPECT_NEAR(squares / count, 1.0, 1e-9);
}

TEST(NormalizeLosses, GivesMeanZeroVarianceOneInTheSameOrder) {
  constexpr double kHuge = std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> cases = {
      {3.0, 1.0, 2.0, 5.0}, {1e6, 1.0, 2.0, 3.0, 4.0, 5e4},    {-1e-12, 0.0, 2e-12},
      {kHuge, -kHuge, 0.0}, {1e9 + 1.0, 1e9 + 2.0, 1e9 + 4.0}, {7.0, 7.0, 8.0},
  };
  for (const std::vector<double>& losses : cases) {
    SCOPED_TRACE(testing::PrintToString(losses));
    const std::vector<double> scaled = Normalized(losses);
    ExpectStandard(scaled);
    for (size_t i = 0; i < losses.size(); ++i) {
      for (size_t j = 0; j < losses.size(); ++j) {
        EXPECT_EQ(scaled[i] < scaled[j], losses[i] < losses[j]);
        EXPECT_EQ(scaled[i] == scaled[j], losses[i] == losses[j]);
      }
    }
  }
}

TEST(LossPerStep, IsInTheUnitOfTheLosses) {
  const auto of = [](const std::vector<double>& losses) {
    return LossPerStep(losses, Normalized(losses));
  };
  EXPECT_NEAR(of({3.0, 3.0, 4.0}), std::sqrt(2.0 / 9.0), 1e-9) << "their deviation";
  const std::vector<double> losses = {1.0, 1.01, 1.3, 2.0, 2.4, 7.0, 40.0};
  std::vector<double> thousandfold;
  for (const double loss : losses) thousandfold.push_back(1000.0 * loss);
  EXPECT_NEAR(of(thousandfold), 1000.0 * of(losses), 1e-6 * of(losses));
  EXPECT_GT(of(losses), 0.0);
  EXPECT_LT(of(losses), 3.0) << "near the best, not over all";
  EXPECT_EQ(of({2.0, 2.0}), 0.0);
  EXPECT_EQ(of({}), 0.0);
}

// Without the logarithm the good losses would be 1e-5 deviations apart.
TEST(NormalizeLosses, ShowsDifferencesBesideEnormousLosses) {
  const std::vector<double> scaled =
      Normalized({1.0, 2.0, 3.0, 4.0, 5.0, 1e6, 3e5, 40.0, 900.0, 1e300});
  EXPECT_GT(scaled[4] - scaled[0], 1e-4);
}

// However many trials end near the best, they come no further apart than the first ones say.
TEST(NormalizeLosses, NothingIsSteepenedNearTheBest) {
  std::vector<double> losses = {10.0, 4.0, 7.0, 12.0, 9.0, 6.0, 20.0, 8.0, 15.0, 11.0};
  for (int i = 0; i < 190; ++i) losses.push_back(1.0 + 1e-3 * i / 190.0);
  const std::vector<double> scaled = Normalized(losses);
  const double near = (scaled[199] - scaled[10]) / (losses[199] - losses[10]);
  const double far = (scaled[1] - scaled[10]) / (losses[1] - losses[10]);
  EXPECT_NEAR(near, far, 1e-6 * far) << "below the reference all differences weigh the same";
}

TEST(NormalizeLosses, EqualLossesAreAllZero) {
  EXPECT_EQ(Normalized({4.0}), std::vector<double>{0.0});
  EXPECT_EQ(Normalized(std::vector<double>(3, 0.1)), std::vector<double>(3, 0.0));
  EXPECT_TRUE(Normalized({}).empty());
}

TEST(StartingReference, IsOfTheFirstTenThatAreNumbers) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> losses = {inf, 5.0, 1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0};
  const LossReference first = StartingReference(losses);
  EXPECT_EQ(first.middle, 6.0);
  EXPECT_EQ(first.spread, 5.0 / 4.0);
  losses.insert(losses.end(), 100, -1e9);
  EXPECT_EQ(StartingReference(losses).middle, 6.0) << "later ones do not move it";
}

TEST(StartingReference, TakesAsManyAsItNeedsForTwoToDiffer) {
  std::vector<double> losses(30, 2.0);
  EXPECT_EQ(StartingReference(losses).spread, 0.0);
  losses.push_back(3.0);
  EXPECT_EQ(StartingReference(losses).middle, 3.0) << "the least above the best";
  EXPECT_EQ(StartingReference(losses).spread, 0.25);
  EXPECT_EQ(StartingReference({}).spread, 0.0);
}

}  // namespace
}  // namespace hpo::sampler
