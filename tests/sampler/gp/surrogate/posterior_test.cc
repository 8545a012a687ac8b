#include "sampler/gp/surrogate/posterior.h"

#include <cmath>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "sampler/gp/surrogate/prediction_lanes.h"
#include "tests/golden_file.h"
#include "tests/sampler/gp/point_rows.h"

namespace hpo::sampler {
namespace {

// Points in the unit square.
Rows RandomRows(size_t count, uint64_t seed) {
  Rng rng(seed, 2);
  Rows rows(count);
  for (auto& row : rows) row = {rng.Uniform(), rng.Uniform()};
  return rows;
}

const KernelParameters kKernel{.weights = {4.0, 9.0}, .scale = 1.5, .noise = 1e-4};

Posterior RandomPosterior(size_t num_observed, size_t num_fantasies, double additive = 0.0) {
  KernelParameters kernel = kKernel;
  kernel.additive = additive;
  Posterior posterior(kernel, 2);
  posterior.SetPoints(TableOf(RandomRows(num_observed + num_fantasies, 5), 2));
  std::vector<double> targets;
  for (const auto& row : RandomRows(num_observed, 5)) targets.push_back(std::sin(6.0 * row[0]));
  posterior.SetTargets(targets);
  return posterior;
}

TEST(MaternKernel, AgreesWithScikitLearnOnMixedPoints) {
  const auto golden = ReadGolden("gaussian_process.json");
  for (const auto& test : golden["posteriors"]) {
    const Rows rows = test["points"];
    const Rows asked = test["asked"];
    const KernelParameters kernel{test["weights"], test["scale"], test["noise"]};
    const PointTable points = TableOf(rows, asked[0].size());
    std::vector<double> values;
    for (size_t i = 0; i < asked.size(); ++i) {
      Covariances(kernel, points, asked[i], points.size(), values);
      for (size_t j = 0; j < rows.size(); ++j) {
        EXPECT_NEAR(values[j], test["covariances"][i][j].get<double>(), 1e-14);
      }
    }
  }
}

double Matern(double square) {
  const double scaled = std::sqrt(5.0 * square);
  return (1.0 + scaled + scaled * scaled / 3.0) * std::exp(-scaled);
}

TEST(MaternKernel, APartOfItIsASumOverTheAxes) {
  const KernelParameters kernel{
      .weights = {4.0, 9.0, 2.0}, .scale = 1.5, .noise = 1e-4, .additive = 0.7};
  const PointTable points = TableOf({{0.1, 0.9, 2.0}, {0.5, 0.4, 1.0}}, 3);
  std::vector<double> values;
  Covariances(kernel, points, std::vector<double>{0.2, 0.6, 1.0}, 2, values);
  const auto expected = [](double x, double y, double category) {
    return 1.5 * (0.3 * Matern(x + y + category) +
                  0.7 / 3.0 * (Matern(3.0 * x) + Matern(3.0 * y) + Matern(3.0 * category)));
  };
  EXPECT_NEAR(values[0], expected(4.0 * 0.01, 9.0 * 0.09, 2.0), 1e-14);
  EXPECT_NEAR(values[1], expected(4.0 * 0.09, 9.0 * 0.04, 0.0), 1e-14);
}

TEST(MaternKernel, SlopesAreDerivatives) {
  constexpr double kStep = 1e-6;
  for (const double additive : {0.0, 0.4}) {
    const KernelParameters kernel{
        .weights = {1.0, 2.0}, .scale = 2.0, .noise = 0.0, .additive = additive};
    const PointTable origin = TableOf({{0.0, 0.0}}, 2);
    for (const double square : {0.01, 0.2, 0.9}) {
      std::vector<double> at, after;
      CovarianceSlopes slopes;
      const double x = std::sqrt(square);
      Covariances(kernel, origin, std::vector<double>{x, 0.5}, 1, at, &slopes);
      const double moved = std::sqrt(square + kStep);
      Covariances(kernel, origin, std::vector<double>{moved, 0.5}, 1, after);
      EXPECT_NEAR(slopes.BySquare(0)[0], (after[0] - at[0]) / kStep, 1e-5);
      if (additive == 0.0) continue;
      KernelParameters more = kernel;
      more.additive += kStep;
      Covariances(more, origin, std::vector<double>{x, 0.5}, 1, after);
      EXPECT_NEAR(slopes.by_additive[0], (after[0] - at[0]) / kStep, 1e-5);
    }
  }
}

TEST(PointTable, TruncatesAndGivesPointsBack) {
  PointTable points = TableOf({{1.0, 2.0}, {3.0, 4.0}}, 2);
  EXPECT_EQ(points.Point(1), (std::vector<double>{3.0, 4.0}));
  points.Truncate(1);
  EXPECT_EQ(points, TableOf({{1.0, 2.0}}, 2));
}

TEST(Posterior, AgreesWithScikitLearn) {
  const auto golden = ReadGolden("gaussian_process.json");
  for (const auto& test : golden["posteriors"]) {
    const Rows asked = test["asked"];
    const std::vector<double> targets = test["targets"];
    Posterior posterior({test["weights"], test["scale"], test["noise"]}, asked[0].size());
    posterior.SetPoints(TableOf(test["points"], asked[0].size()));
    posterior.SetTargets(targets);
    for (size_t i = 0; i < asked.size(); ++i) {
      const Prediction actual = posterior.Predict(asked[i], nullptr);
      EXPECT_NEAR(actual.mean, test["mean"][i].get<double>(), 1e-10);
      EXPECT_NEAR(actual.deviation, test["deviation"][i].get<double>(), 1e-9);
    }
  }
}

// By the share of the kernel that is a sum over the axes.
class PosteriorOfKernel : public testing::TestWithParam<double> {};

// Any number of points, with and without fantasies.
TEST_P(PosteriorOfKernel, ManyPointsTogetherEqualThemOneByOne) {
  for (const size_t num_observed : {1, 2, 3, 4, 5, 8, 31, 100}) {
    const Posterior posterior = RandomPosterior(num_observed, 3, GetParam());
    const Rows asked = RandomRows(19, 11);
    const std::vector<Prediction> together = posterior.Predict(asked);
    ASSERT_EQ(together.size(), asked.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      const Prediction alone = posterior.Predict(asked[i], nullptr);
      EXPECT_NEAR(together[i].mean, alone.mean, 1e-10);
      EXPECT_NEAR(together[i].deviation, alone.deviation, 1e-10);
    }
  }
  EXPECT_TRUE(RandomPosterior(3, 0).Predict(Rows{}).empty());
}

TEST_P(PosteriorOfKernel, SlopesAreDerivatives) {
  const Posterior posterior = RandomPosterior(20, 3, GetParam());
  constexpr double kStep = 1e-6;
  for (const auto& x : RandomRows(10, 11)) {
    PredictionSlopes slopes;
    const Prediction at = posterior.Predict(x, &slopes);
    EXPECT_EQ(at.mean, posterior.Predict(x, nullptr).mean);
    for (size_t axis = 0; axis < 2; ++axis) {
      std::vector<double> left = x;
      std::vector<double> right = x;
      left[axis] -= kStep;
      right[axis] += kStep;
      const Prediction before = posterior.Predict(left, nullptr);
      const Prediction after = posterior.Predict(right, nullptr);
      EXPECT_NEAR(slopes.mean[axis], (after.mean - before.mean) / (2 * kStep), 1e-5);
      EXPECT_NEAR(slopes.deviation[axis], (after.deviation - before.deviation) / (2 * kStep), 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Posterior, PosteriorOfKernel, testing::Values(0.0, 0.7));

// A fantasy observed at the posterior mean: the mean stays, the uncertainty goes.
TEST(Posterior, FantasiesTakeUncertaintyAwayAndLeaveTheMean) {
  const Posterior without = RandomPosterior(12, 0);
  const Posterior with = RandomPosterior(12, 4);
  const Rows rows = RandomRows(16, 5);
  for (size_t i = 12; i < rows.size(); ++i) {
    EXPECT_NEAR(with.Predict(rows[i], nullptr).mean, without.Predict(rows[i], nullptr).mean, 1e-12);
    EXPECT_LT(with.Predict(rows[i], nullptr).deviation, 0.02);
    EXPECT_GT(without.Predict(rows[i], nullptr).deviation,
              with.Predict(rows[i], nullptr).deviation);
  }
}

TEST(Posterior, PointsThatComeAndGoLeaveNoTrace) {
  Posterior moved = RandomPosterior(9, 0);
  moved.SetPoints(TableOf(RandomRows(14, 99), 2));
  Rows rows = RandomRows(9, 5);
  rows[8] = {0.5, 0.5};
  moved.SetPoints(TableOf(rows, 2));
  moved.SetPoints(TableOf(RandomRows(20, 5), 2));
  const Posterior fresh = RandomPosterior(15, 5);
  std::vector<double> targets;
  for (const auto& row : RandomRows(15, 5)) targets.push_back(std::sin(6.0 * row[0]));
  moved.SetTargets(targets);
  for (const auto& x : RandomRows(5, 4)) {
    EXPECT_EQ(moved.Predict(x, nullptr).mean, fresh.Predict(x, nullptr).mean);
    EXPECT_EQ(moved.Predict(x, nullptr).deviation, fresh.Predict(x, nullptr).deviation);
  }
}

TEST(Posterior, MeansAreThoseAtObservedPointsAndThenFantasies) {
  for (const size_t num_fantasies : {size_t{0}, size_t{30}}) {
    const Posterior posterior = RandomPosterior(15, num_fantasies);
    const std::vector<double> means = posterior.Means();
    ASSERT_EQ(means.size(), 15 + num_fantasies);
    const auto rows = RandomRows(15 + num_fantasies, 5);
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_NEAR(means[i], posterior.Predict(rows[i], nullptr).mean, 1e-11);
    }
  }
}

TEST(Posterior, DuplicatesAndNothingAtAll) {
  Posterior posterior({.weights = {1.0}, .scale = 1.0, .noise = 0.0}, 1);
  posterior.SetPoints(TableOf(Rows(6, {0.5}), 1));
  posterior.SetTargets(std::vector<double>(6, 1.0));
  const Prediction at = posterior.Predict(std::vector<double>{0.5}, nullptr);
  EXPECT_NEAR(at.mean, 1.0, 1e-3);
  EXPECT_GT(at.deviation, 0.0);

  Posterior empty({.weights = {1.0}, .scale = 4.0, .noise = 0.1}, 1);
  PredictionSlopes slopes;
  const Prediction prior = empty.Predict(std::vector<double>{0.5}, &slopes);
  EXPECT_EQ(prior.mean, 0.0);
  EXPECT_EQ(prior.deviation, 2.0);
  EXPECT_EQ(slopes.mean, std::vector<double>{0.0});
}

}  // namespace
}  // namespace hpo::sampler
