#include "sampler/gp/prior_trend.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/sampler/gp/point_rows.h"

namespace hpo::sampler {
namespace {

double SlowWave(double x) { return std::sin(5.0 * x); }

// `count` even points of [0, 1] with the values of `function`.
template <typename Function>
LabelledPoints Even(size_t count, Function function) {
  LabelledPoints points{PointTable(1), {}};
  for (size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i) / static_cast<double>(count - 1);
    points.points.Append(std::vector<double>{x});
    points.values.push_back(function(x));
  }
  return points;
}

template <typename Function>
Posterior After(Function function) {
  const LabelledPoints observed = Even(40, function);
  Posterior posterior({.weights = {9.0}, .scale = 1.0, .noise = 1e-6}, 1);
  posterior.SetPoints(observed.points);
  posterior.SetTargets(observed.values);
  return posterior;
}

TEST(ChooseTrend, TakesThePriorThatOrdersBest) {
  const LabelledPoints own = Even(20, [](double x) { return 7.0 + 100.0 * SlowWave(x); });
  const auto trend = ChooseTrend({After([](double x) { return x; }), std::nullopt, After(SlowWave),
                                  After([](double x) { return -SlowWave(x); })},
                                 own);
  ASSERT_TRUE(trend.has_value());
  EXPECT_EQ(trend->vote.prior, 2u);
  EXPECT_GT(trend->vote.worth, 0.99);
  // Times the weight, its means have the deviation of losses brought to variance 1.
  EXPECT_NEAR(trend->weight, 1.0 / 0.76, 0.1);
}

TEST(ChooseTrend, NoneWhereNoneOrdersTheTrials) {
  const LabelledPoints own = Even(20, SlowWave);
  EXPECT_FALSE(ChooseTrend({}, own).has_value());
  EXPECT_FALSE(ChooseTrend({std::nullopt}, own).has_value());
  EXPECT_FALSE(ChooseTrend({After([](double x) { return -SlowWave(x); })}, own).has_value());
  EXPECT_FALSE(ChooseTrend({After([](double) { return 0.0; })}, own).has_value());
}

TEST(Trend, SlopesAreDerivatives) {
  const Trend trend{After(SlowWave), 0.7, {}};
  constexpr double kStep = 1e-6;
  for (const double x : {0.11, 0.5, 0.93}) {
    std::vector<double> slopes;
    const double at = trend.At(std::vector<double>{x}, &slopes);
    EXPECT_NEAR(at, 0.7 * SlowWave(x), 1e-3);
    const double expected = (trend.At(std::vector<double>{x + kStep}, nullptr) -
                             trend.At(std::vector<double>{x - kStep}, nullptr)) /
                            (2.0 * kStep);
    EXPECT_NEAR(slopes[0], expected, 1e-5);
  }
}

TEST(TakeOff, LeavesWhatThePriorDoesNotSayInAUnitOfItsOwn) {
  const Trend trend{After(SlowWave), 2.0, {}};
  LabelledPoints own =
      Even(30, [](double x) { return 2.0 * SlowWave(x) + 0.01 * std::cos(20.0 * x); });
  const std::vector<double> before = own.values;
  const double unit = TakeOff(trend, own);
  EXPECT_NEAR(unit, 0.007, 0.001);
  double sum = 0.0;
  for (size_t i = 0; i < before.size(); ++i) {
    sum += own.values[i];
    const double remainder = before[i] - trend.At(own.points.Point(i), nullptr);
    const double first = before[0] - trend.At(own.points.Point(0), nullptr);
    EXPECT_NEAR(unit * (own.values[i] - own.values[0]), remainder - first, 1e-9);
  }
  EXPECT_NEAR(sum, 0.0, 1e-9);
}

TEST(TakeOff, APriorThatLeavesNothingIsNoDivisionByNothing) {
  const Trend trend{After(SlowWave), 1.0, {}};
  LabelledPoints own =
      Even(10, [&](double x) { return trend.At(std::vector<double>{x}, nullptr); });
  EXPECT_GT(TakeOff(trend, own), 0.0);
  for (const double value : own.values) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace hpo::sampler
