#include "sampler/cma_es/evolution_strategy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "gtest/gtest.h"

namespace hpo::sampler {
namespace {

using Function = std::function<double(const std::vector<double>&)>;
constexpr auto kCompleted = Merit::Class::kCompleted;

EvolutionStrategy Around(std::vector<double> position) {
  const size_t num_axes = position.size();
  return EvolutionStrategy(num_axes, 7, {{std::move(position), {kCompleted, 1.0}}});
}

// The best value of `evaluations` draws, each told.
double Minimize(EvolutionStrategy& strategy, const Function& function, int evaluations) {
  Rng rng(5, 0);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < evaluations; ++i) {
    std::vector<double> position = strategy.Draw(rng);
    const double value = function(position);
    best = std::min(best, value);
    strategy.Tell({std::move(position), {kCompleted, value}});
  }
  return best;
}

double Sphere(const std::vector<double>& x) {
  double sum = 0.0;
  for (const double part : x) sum += (part - 0.6) * (part - 0.6);
  return sum;
}

// Condition 1e6, turned so that no axis is one of its own.
double Ellipsoid(const std::vector<double>& x) {
  const double a = (x[0] + x[1] - 0.9) / std::sqrt(2.0);
  const double b = (x[0] - x[1] + 0.2) / std::sqrt(2.0);
  const double c = x[2] - 0.3;
  return a * a + 1e6 * b * b + 1e3 * c * c;
}

TEST(EvolutionStrategy, ConvergesOnASphere) {
  EvolutionStrategy strategy = Around({0.1, 0.1, 0.9, 0.9, 0.5});
  EXPECT_EQ(strategy.population(), 8u);
  EXPECT_LT(Minimize(strategy, Sphere, 800), 1e-9);
  for (const double x : strategy.mean()) EXPECT_NEAR(x, 0.6, 1e-4);
  EXPECT_LT(strategy.Spread(), 1e-3);
  EXPECT_EQ(strategy.runs(), 1u);
}

TEST(EvolutionStrategy, LearnsWhichDirectionsMatter) {
  EvolutionStrategy strategy = Around({0.5, 0.5, 0.5});
  EXPECT_LT(Minimize(strategy, Ellipsoid, 1500), 1e-8);
}

TEST(EvolutionStrategy, FindsAnOptimumOnTheBorder) {
  EvolutionStrategy strategy = Around({0.5, 0.5});
  const auto slope = [](const std::vector<double>& x) { return x[0] - x[1]; };
  EXPECT_LT(Minimize(strategy, slope, 400), -0.99);
}

TEST(EvolutionStrategy, BeginsWhereTheBestTenthLies) {
  std::vector<EvaluatedPlace> start;
  for (int i = 0; i < 100; ++i) {
    const double x = i / 100.0;
    start.push_back({{x, 1.0 - x}, {kCompleted, x}});
  }
  const EvolutionStrategy strategy(2, 1, start);
  EXPECT_NEAR(strategy.mean()[0], 0.045, 1e-12);
  EXPECT_NEAR(strategy.mean()[1], 0.955, 1e-12);
  // 0.01 and the variance of ten places 0.01 apart.
  EXPECT_NEAR(strategy.Spread(), std::sqrt(0.01 + 0.000825), 1e-6);
  // The two axes fall together in those places: so do draws.
  Rng rng(3, 0);
  double product = 0.0;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<double> x = strategy.Draw(rng);
    product += (x[0] - 0.045) * (x[1] - 0.955) / 4000.0;
  }
  EXPECT_LT(product, 0.0);
}

TEST(EvolutionStrategy, DrawsStayInTheCube) {
  const EvolutionStrategy strategy = Around({0.0, 1.0, 0.5});
  Rng rng(1, 0);
  for (int i = 0; i < 500; ++i) {
    for (const double x : strategy.Draw(rng)) {
      EXPECT_GE(x, 0.0);
      EXPECT_LE(x, 1.0);
    }
  }
}

// One good place far away moves the mean no further than a long step of the distribution's own.
TEST(EvolutionStrategy, ShortensForeignSteps) {
  EvolutionStrategy strategy = Around({0.1, 0.1});
  Minimize(
      strategy, [](const auto& x) { return std::hypot(x[0] - 0.1, x[1] - 0.1); }, 240);
  const double spread = strategy.Spread();
  ASSERT_LT(spread, 0.01);
  const std::vector<double> before = strategy.mean();
  for (size_t i = 0; i < strategy.population(); ++i) {
    strategy.Tell({{0.9, 0.9}, {kCompleted, -1.0 - static_cast<double>(i)}});
  }
  const double moved = std::hypot(strategy.mean()[0] - before[0], strategy.mean()[1] - before[1]);
  EXPECT_GT(moved, 0.0);
  EXPECT_LT(moved, 5.0 * spread);
  // And it learns to go there.
  EXPECT_LT(Minimize(
                strategy, [](const auto& x) { return std::hypot(x[0] - 0.9, x[1] - 0.9); }, 600),
            1e-3);
}

TEST(EvolutionStrategy, AConvergedRunIsFollowedByALargerOne) {
  EvolutionStrategy strategy = Around({0.5, 0.5});
  const size_t population = strategy.population();
  Minimize(strategy, Sphere, 3000);
  EXPECT_GE(strategy.runs(), 2u);
  EXPECT_GE(strategy.population(), 2 * population);
}

TEST(EvolutionStrategy, AFlatGenerationEndsARun) {
  EvolutionStrategy strategy = Around({0.5, 0.5});
  Minimize(
      strategy, [](const auto&) { return 2.0; }, static_cast<int>(strategy.population()));
  EXPECT_EQ(strategy.runs(), 2u);
  EXPECT_NEAR(strategy.Spread(), 0.3, 1e-12);
}

TEST(EvolutionStrategy, UselessGenerationsChangeNothing) {
  EvolutionStrategy strategy = Around({0.2, 0.2});
  const std::vector<double> mean = strategy.mean();
  for (size_t i = 0; i < strategy.population(); ++i) strategy.Tell({{0.9, 0.9}, Merit{}});
  EXPECT_EQ(strategy.mean(), mean);
  EXPECT_EQ(strategy.runs(), 1u);
}

TEST(EvolutionStrategy, OneAxisWorks) {
  EvolutionStrategy strategy = Around({0.9});
  EXPECT_LT(Minimize(strategy, Sphere, 200), 1e-8);
}

TEST(Merit, CompletedBeforeStoppedBeforeUseless) {
  const Merit good{kCompleted, 1.0}, bad{kCompleted, 2.0};
  const Merit stopped{Merit::Class::kStopped, -5.0};
  EXPECT_LT(good, bad);
  EXPECT_LT(bad, stopped);
  EXPECT_LT(stopped, Merit{});
}

}  // namespace
}  // namespace hpo::sampler
