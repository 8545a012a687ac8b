#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "sampler/numeric/hypervolume.h"
#include "sampler/numeric/non_domination.h"
#include "sampler/numeric/portable_math.h"
#include "tests/golden_file.h"

namespace hpo::sampler {
namespace {

using Points = std::vector<std::vector<double>>;

const nlohmann::json& Golden() {
  static const nlohmann::json golden = ReadGolden("several_objectives.json");
  return golden;
}

// Points of one simplex, so that none dominates another.
Points Simplex(size_t num_points, size_t num_losses) {
  Rng rng(7, num_losses);
  Points points(num_points, std::vector<double>(num_losses));
  for (std::vector<double>& point : points) {
    for (double& loss : point) loss = 0.01 + rng.Uniform();
    const double sum = std::accumulate(point.begin(), point.end(), 0.0);
    for (double& loss : point) loss /= sum;
  }
  return points;
}

double VolumeOf(const Points& corners, const std::vector<size_t>& chosen) {
  Points some;
  for (const size_t i : chosen) some.push_back(corners[i]);
  return UnionVolume(some);
}

TEST(NonDominationRanks, AreOptunas) {
  for (const nlohmann::json& c : Golden()["ranks"]) {
    const Points points = c["points"];
    EXPECT_EQ(NonDominationRanks(points, points.size()), c["ranks"]) << c["points"];
  }
}

TEST(NonDominationRanks, AreTheSameAsFarAsTheyAreAskedFor) {
  for (const nlohmann::json& c : Golden()["ranks"]) {
    const Points points = c["points"];
    const std::vector<size_t> all = c["ranks"];
    for (size_t count = 0; count <= points.size(); ++count) {
      SCOPED_TRACE(count);
      size_t num_rounds = 0;
      const auto num_before = [&] {
        return std::count_if(all.begin(), all.end(), [&](size_t r) { return r < num_rounds; });
      };
      while (static_cast<size_t>(num_before()) < count) ++num_rounds;
      std::vector<size_t> expected = all;
      for (size_t& rank : expected) rank = std::min(rank, num_rounds);
      ASSERT_EQ(NonDominationRanks(points, count), expected);
    }
  }
}

TEST(NonDominationRanks, InfinityIsALossLikeAnyOther) {
  const Points points = {{kUnbounded, 0.0},
                         {1.0, kUnbounded},
                         {kUnbounded, kUnbounded},
                         {2.0, 0.0},
                         {-kUnbounded, 5.0}};
  EXPECT_EQ(NonDominationRanks(points, points.size()), (std::vector<size_t>{1, 1, 2, 0, 0}));
}

TEST(UnionVolume, IsOptunasHypervolume) {
  for (const nlohmann::json& c : Golden()["volumes"]) {
    EXPECT_NEAR(UnionVolume(Points(c["corners"])) / double{c["volume"]}, 1.0, 1e-12)
        << c["corners"];
  }
}

TEST(UnionVolume, BoxesInsideOthersAddNothing) {
  EXPECT_EQ(UnionVolume(Points{}), 0.0);
  for (size_t num_sides = 2; num_sides <= 5; ++num_sides) {
    Points corners(1, std::vector<double>(num_sides, 2.0));
    EXPECT_EQ(UnionVolume(corners), std::pow(2.0, static_cast<double>(num_sides)));
    corners.push_back(corners.front());
    corners.emplace_back(num_sides, 1.0);
    corners.emplace_back(num_sides, 0.0);
    EXPECT_EQ(UnionVolume(corners), std::pow(2.0, static_cast<double>(num_sides)));
  }
}

TEST(ChooseByHypervolume, IsOptunasChoice) {
  for (const nlohmann::json& c : Golden()["choices"]) {
    EXPECT_EQ(ChooseByHypervolume(Points(c["points"]), c["chosen"].size()), c["chosen"])
        << c["points"];
  }
}

TEST(ChooseByHypervolume, TiesGoToTheFirstByLosses) {
  // The outer two have no volume; the next two have one of the same size.
  const Points points = {{4.0, 0.0}, {3.0, 1.0}, {1.0, 3.0}, {0.0, 4.0}};
  EXPECT_EQ(ChooseByHypervolume(points, 1), (std::vector<size_t>{2}));
  EXPECT_EQ(ChooseByHypervolume(points, 2), (std::vector<size_t>{1, 2}));
}

TEST(ChooseByHypervolume, RepeatedPointsComeLastAndInTheirOrder) {
  const Points points = {{1.0, 3.0}, {1.0, 3.0}, {1.0, 3.0}, {3.0, 1.0}, {3.0, 1.0}};
  EXPECT_EQ(ChooseByHypervolume(points, 2), (std::vector<size_t>{0, 3}));
  EXPECT_EQ(ChooseByHypervolume(points, 3), (std::vector<size_t>{0, 1, 3}));
  EXPECT_EQ(ChooseByHypervolume(points, 4), (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(ChooseByHypervolume(points, 9), (std::vector<size_t>{0, 1, 2, 3, 4}));
}

TEST(ChooseByHypervolume, InfiniteLossesAddNoVolume) {
  const Points points = {{-1.0, kUnbounded}, {3.0, 1.0}, {kUnbounded, 0.0}, {1.0, 3.0}};
  EXPECT_EQ(ChooseByHypervolume(points, 2), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(ChooseByHypervolume(points, 3), (std::vector<size_t>{0, 1, 3}));
  const Points nowhere_finite = {{kUnbounded, -kUnbounded}, {-kUnbounded, kUnbounded}};
  EXPECT_EQ(ChooseByHypervolume(nowhere_finite, 1), (std::vector<size_t>{1}));
  // As good as 1 there.
  const Points unbounded = {{-kUnbounded, 5.0}, {1.0, 4.0}, {2.0, 1.0}};
  EXPECT_EQ(ChooseByHypervolume(unbounded, 2), (std::vector<size_t>{1, 2}));
}

TEST(ChooseByHypervolume, LossesAtTheLimitsOfDoubles) {
  const double most = std::numeric_limits<double>::max();
  const double least = std::numeric_limits<double>::denorm_min();
  const Points points = {{-most, most}, {-1e300, 1e300}, {0.0, least}, {least, 0.0}, {most, -most}};
  EXPECT_EQ(ChooseByHypervolume(points, 1), (std::vector<size_t>{1}));
  EXPECT_EQ(ChooseByHypervolume(Points{{0.0, least}, {least, 0.0}}, 1), (std::vector<size_t>{0}));
}

// Beyond the budget of exact volumes.
TEST(ChooseByHypervolume, ManyPointsOfManyLossesAreStillSpread) {
  const Points points = Simplex(2'000, 8);
  const std::vector<size_t> chosen = ChooseByHypervolume(points, 12);
  EXPECT_EQ(chosen.size(), 12u);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  std::vector<size_t> first(12);
  std::iota(first.begin(), first.end(), size_t{0});
  Points corners = points;
  for (std::vector<double>& corner : corners) {
    for (double& loss : corner) loss = 1.0 - loss;
  }
  EXPECT_GT(VolumeOf(corners, chosen), 1.02 * VolumeOf(corners, first));
}

}  // namespace
}  // namespace hpo::sampler
