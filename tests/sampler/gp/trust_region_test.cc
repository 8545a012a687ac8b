#include "sampler/gp/trust_region.h"

#include <algorithm>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

// Trials on two axes.
class TrustRegionTest : public testing::Test {
 protected:
  // Ten spread out, with losses from 10 on, the best of them at (0.5, 0.5).
  TrustRegionTest() {
    for (int i = 0; i < 9; ++i) Add(0.1 * i, 0.9 - 0.1 * i, 11.0 + i);
    Add(0.5, 0.5, 10.0);
  }

  void Add(double x, double y, double loss) {
    points_.Append(std::vector<double>{x, y});
    losses_.push_back(loss);
  }

  TrustRegion Find(size_t num_running = 0) const {
    return FindTrustRegion(points_, losses_, num_running);
  }

  PointTable points_{2};
  std::vector<double> losses_;
};

TEST_F(TrustRegionTest, IsAroundTheBest) {
  EXPECT_EQ(Find().center, 9u);
  EXPECT_EQ(Find().side, 0.4);
  Add(0.2, 0.3, 1.0);
  EXPECT_EQ(Find().center, 10u);
}

TEST_F(TrustRegionTest, WhatCannotBeTheBestIsNoCenter) {
  losses_[9] = kUnbounded;
  EXPECT_EQ(Find().center, 0u);
  losses_.assign(10, kUnbounded);
  losses_[4] = 3.0;
  EXPECT_EQ(Find().center, 4u);
}

TEST_F(TrustRegionTest, HalvesAfterFourMissesAndLaterWhereManyRun) {
  for (int i = 0; i < 3; ++i) Add(0.5, 0.5 + 0.01 * i, 12.0);
  EXPECT_EQ(Find().side, 0.4);
  Add(0.55, 0.55, 12.0);
  EXPECT_EQ(Find().side, 0.2);
  EXPECT_EQ(Find(2).side, 0.4);
}

TEST_F(TrustRegionTest, MissesElsewhereDoNotCount) {
  for (int i = 0; i < 40; ++i) Add(0.95, 0.05, 12.0);
  EXPECT_EQ(Find().side, 0.4);
}

TEST_F(TrustRegionTest, DoublesAfterThreeGains) {
  for (int i = 0; i < 4; ++i) Add(0.5, 0.5, 12.0);
  for (int i = 0; i < 2; ++i) Add(0.5, 0.5, 9.0 - i);
  EXPECT_EQ(Find().side, 0.2);
  Add(0.5, 0.5, 7.0);
  EXPECT_EQ(Find().side, 0.4);
}

// A thousandth of what the first trials were behind.
TEST_F(TrustRegionTest, GainsThatNobodyNoticesAreMisses) {
  for (int i = 0; i < 4; ++i) Add(0.5, 0.5, 10.0 - 1e-6 * (i + 1));
  EXPECT_EQ(Find().side, 0.2);
  EXPECT_EQ(Find().center, 13u) << "though it is the best";
}

TEST_F(TrustRegionTest, StartsElsewhereWhereNothingIsLeftToGain) {
  Add(0.9, 0.1, 10.5);
  for (int i = 0; i < 20; ++i) Add(0.5, 0.5, 12.0);
  EXPECT_EQ(Find().center, 10u) << "the best that is not near (0.5, 0.5)";
  EXPECT_EQ(Find().side, 0.4);
  Add(0.51, 0.5, 5.0);
  EXPECT_EQ(Find().center, 31u) << "a gain there after all";
}

TEST_F(TrustRegionTest, WithoutAnotherPlaceTheBestIsTakenUpAgain) {
  points_ = PointTable(2);
  losses_.clear();
  for (int i = 0; i < 200; ++i) Add(0.5, 0.5, 1.0 + i);
  EXPECT_EQ(Find().center, 0u);
}

TEST_F(TrustRegionTest, TellsWhatLiesNear) {
  Rng rng(5, 5);
  for (int i = 0; i < 300; ++i) Add(rng.Uniform(), rng.Uniform(), 20.0);
  const TrustRegion region = Find();
  EXPECT_TRUE(std::is_sorted(region.nearest.begin(), region.nearest.end()));
  EXPECT_GE(region.nearest.size(), 20u) << "five for each axis and two more";
  EXPECT_LE(region.nearest.size(), 160u);
  ASSERT_EQ(region.in_box.size(), region.nearest.size());
  for (size_t k = 0; k < region.nearest.size(); ++k) {
    const std::vector<double> point = points_.Point(region.nearest[k]);
    const std::vector<double> center = points_.Point(region.center);
    const double distance =
        std::max(std::abs(point[0] - center[0]), std::abs(point[1] - center[1]));
    EXPECT_EQ(region.in_box[k], distance <= 0.5 * region.side + 1e-9);
  }
  EXPECT_TRUE(std::count(region.nearest.begin(), region.nearest.end(), region.center));
}

TEST_F(TrustRegionTest, OneTrialIsARegion) {
  PointTable one(2);
  one.Append(std::vector<double>{0.1, 0.2});
  const TrustRegion region = FindTrustRegion(one, std::vector<double>{kUnbounded}, 0);
  EXPECT_EQ(region.nearest, std::vector<size_t>{0});
}

}  // namespace
}  // namespace hpo::sampler
