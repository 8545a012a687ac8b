#include "sampler/numeric/lbfgs_b.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "gtest/gtest.h"
#include "tests/golden_file.h"

namespace hpo::sampler {
namespace {

double Rosenbrock(std::span<const double> x, std::span<double> gradient) {
  std::fill(gradient.begin(), gradient.end(), 0.0);
  double sum = 0.0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const double valley = x[i + 1] - x[i] * x[i];
    sum += 100.0 * valley * valley + (1.0 - x[i]) * (1.0 - x[i]);
    gradient[i] += -400.0 * x[i] * valley - 2.0 * (1.0 - x[i]);
    gradient[i + 1] += 200.0 * valley;
  }
  return sum;
}

double Branin(std::span<const double> x, std::span<double> gradient) {
  constexpr double kPi = std::numbers::pi;
  const double inner = x[1] - 5.1 / (4.0 * kPi * kPi) * x[0] * x[0] + 5.0 / kPi * x[0] - 6.0;
  const double wave = 10.0 * (1.0 - 1.0 / (8.0 * kPi));
  gradient[0] = 2.0 * inner * (-5.1 / (2.0 * kPi * kPi) * x[0] + 5.0 / kPi) - wave * std::sin(x[0]);
  gradient[1] = 2.0 * inner;
  return inner * inner + wave * std::cos(x[0]) + 10.0;
}

double Paraboloid(std::span<const double> x, std::span<double> gradient) {
  double value = 0.0;
  double total = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double order = static_cast<double>(i + 1);
    value += order * (x[i] - order) * (x[i] - order);
    total += x[i] - order;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    const double order = static_cast<double>(i + 1);
    gradient[i] = 2.0 * order * (x[i] - order) + 2.0 * total;
  }
  return value + total * total;
}

SmoothFunction FunctionNamed(const std::string& name) {
  if (name == "rosenbrock") return Rosenbrock;
  if (name == "branin") return Branin;
  return Paraboloid;
}

TEST(LbfgsB, ReachesTheMinimaThatSciPyReaches) {
  const auto golden = ReadGolden("gaussian_process.json");
  const LbfgsBOptions options{.max_iterations = 1000,
                              .max_evaluations = 2000,
                              .gradient_tolerance = 1e-8,
                              .value_tolerance = 1e-16};
  ASSERT_GE(golden["boxes"].size(), 10u);
  for (const auto& test : golden["boxes"]) {
    SCOPED_TRACE(test.dump());
    const std::vector<double> start = test["start"];
    const std::vector<double> lower = test["lower"];
    const std::vector<double> upper = test["upper"];
    const LbfgsBResult found =
        MinimizeInBox(FunctionNamed(test["function"]), start, lower, upper, options);
    const double value = test["value"];
    EXPECT_NEAR(found.value, value, 1e-9 * std::max(value, 1.0));
    for (size_t i = 0; i < start.size(); ++i) {
      EXPECT_NEAR(found.x[i], test["x"][i].get<double>(), 2e-4);
      EXPECT_GE(found.x[i], lower[i]);
      EXPECT_LE(found.x[i], upper[i]);
    }
  }
}

// The model of curvature pays: steepest descent would need thousands of evaluations here.
TEST(LbfgsB, NeedsFewEvaluations) {
  const std::vector<double> start(10, 3.0);
  const std::vector<double> lower(10, -5.0);
  const std::vector<double> upper(10, 10.0);
  const LbfgsBResult found = MinimizeInBox(Rosenbrock, start, lower, upper);
  EXPECT_TRUE(found.converged);
  EXPECT_LT(found.value, 1e-6);
  EXPECT_LT(found.evaluations, 120);
}

TEST(LbfgsB, StopsAtItsLimits) {
  const std::vector<double> start = {-1.2, 1.0};
  const std::vector<double> lower(2, -5.0);
  const std::vector<double> upper(2, 5.0);
  const LbfgsBResult found = MinimizeInBox(Rosenbrock, start, lower, upper, {.max_evaluations = 9});
  EXPECT_FALSE(found.converged);
  EXPECT_LE(found.evaluations, 9);
  EXPECT_LT(found.value, 24.0);
}

TEST(LbfgsB, MovesTheStartIntoTheBox) {
  const LbfgsBResult found = MinimizeInBox(Paraboloid, std::vector<double>{90.0},
                                           std::vector<double>{2.0}, std::vector<double>{4.0});
  EXPECT_TRUE(found.converged);
  EXPECT_EQ(found.x, std::vector<double>{2.0});
}

TEST(LbfgsB, AnEmptyProblemIsSolved) {
  const SmoothFunction constant = [](std::span<const double>, std::span<double>) { return 3.0; };
  const LbfgsBResult found = MinimizeInBox(constant, {}, {}, {});
  EXPECT_TRUE(found.converged);
  EXPECT_EQ(found.value, 3.0);
}

// ln x has no value left of 0: the line search steps back from there.
TEST(LbfgsB, StepsBackFromWhereThereIsNoValue) {
  const SmoothFunction function = [](std::span<const double> x, std::span<double> gradient) {
    gradient[0] = 1.0 - 0.001 / x[0];
    return x[0] > 0.0 ? x[0] - 0.001 * std::log(x[0]) : std::numeric_limits<double>::quiet_NaN();
  };
  const LbfgsBResult found = MinimizeInBox(function, std::vector<double>{0.7},
                                           std::vector<double>{-1.0}, std::vector<double>{1.0});
  EXPECT_NEAR(found.x[0], 0.001, 1e-5);
}

TEST(LbfgsB, AStartWithoutAValueIsGivenBack) {
  const SmoothFunction nothing = [](std::span<const double>, std::span<double> gradient) {
    gradient[0] = std::numeric_limits<double>::quiet_NaN();
    return 0.0;
  };
  const LbfgsBResult found = MinimizeInBox(nothing, std::vector<double>{0.5},
                                           std::vector<double>{0.0}, std::vector<double>{1.0});
  EXPECT_FALSE(found.converged);
  EXPECT_EQ(found.x, std::vector<double>{0.5});
}

}  // namespace
}  // namespace hpo::sampler
