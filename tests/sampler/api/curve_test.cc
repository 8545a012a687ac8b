#include "sampler/api/curve.h"

#include <cmath>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace hpo::sampler {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void ExpectSame(const Curve& grown, const Curve& built) {
  EXPECT_EQ(grown, built);
  EXPECT_EQ(grown.best(), built.best());
  EXPECT_EQ(grown.all_finite(), built.all_finite());
  EXPECT_EQ(grown.widest_gap(), built.widest_gap());
  EXPECT_EQ(grown.mean(), built.mean()) << "to the last bit";
}

TEST(Curve, GrownInAnyOrderEqualsBuiltAnew) {
  Rng rng(7, 0);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> steps;
    for (int64_t step = 0; step < 40; ++step) steps.push_back(step * 3);
    if (round % 2 == 1) {
      for (size_t i = steps.size(); i > 1; --i) std::swap(steps[i - 1], steps[rng.Below(i)]);
    }
    Curve grown;
    Curve::Values values;
    for (const int64_t step : steps) {
      const double value = std::exp(20.0 * rng.Uniform()) - 1e5;
      EXPECT_TRUE(grown.Add(step, value));
      values.emplace(step, value);
      ExpectSame(grown, Curve(values));
    }
  }
}

TEST(Curve, TheFirstValueOfAStepStays) {
  Curve curve = {{1, 0.5}, {2, 0.25}};
  EXPECT_FALSE(curve.Add(1, 0.1));
  EXPECT_FALSE(curve.Add(2, 0.1));
  ExpectSame(curve, {{1, 0.5}, {2, 0.25}});
}

TEST(Curve, TheWidestGapIsBetweenTwoSteps) {
  EXPECT_EQ(Curve().widest_gap(), 0);
  EXPECT_EQ((Curve{{5, 1.0}}).widest_gap(), 0);
  EXPECT_EQ((Curve{{5, 1.0}, {8, 1.0}}).widest_gap(), 3);
  EXPECT_EQ((Curve{{1, 1.0}, {8, 1.0}, {9, 1.0}}).widest_gap(), 7);
}

TEST(Curve, NoNumberIsNoBest) {
  Curve curve;
  EXPECT_TRUE(std::isnan(curve.best()));
  curve.Add(1, kNan);
  EXPECT_TRUE(std::isnan(curve.best()));
  EXPECT_FALSE(curve.all_finite());
  curve.Add(2, 0.5);
  curve.Add(3, kNan);
  curve.Add(4, 0.75);
  EXPECT_EQ(curve.best(), 0.5);
}

}  // namespace
}  // namespace hpo::sampler
