#include "sampler/gp/surrogate/hyperparameters.h"

#include <cmath>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/golden_file.h"
#include "tests/sampler/gp/point_rows.h"

namespace hpo::sampler {
namespace {

LogNormal LogNormalOf(const nlohmann::json& json) { return {json[0], json[1]}; }

TEST(LogPosterior, AgreesWithScikitLearn) {
  const auto golden = ReadGolden("gaussian_process.json");
  for (const auto& test : golden["likelihoods"]) {
    const Rows rows = test["points"];
    const std::vector<double> logs = test["logs"];
    const std::vector<double> targets = test["targets"];
    const auto& prior = test["prior"];
    const LogParameters parameters(rows[0].size());
    std::vector<double> gradient(parameters.size());
    const double value = LogPosterior(
        TableOf(rows, rows[0].size()), targets,
        {LogNormalOf(prior["length"]), LogNormalOf(prior["scale"]), LogNormalOf(prior["noise"])},
        parameters, logs, gradient);
    const double expected = test["value"];
    EXPECT_NEAR(value, expected, 1e-9 * std::abs(expected));
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double slope = test["gradient"][i];
      EXPECT_NEAR(gradient[i], slope, 1e-8 * std::max(std::abs(slope), 1.0)) << i;
    }
  }
}

// A numeric axis, a category of three and `extra` further numeric axes.
PointTable MixedPoints(size_t count, size_t extra) {
  Rng rng(4, 4);
  PointTable points(2 + extra);
  for (size_t i = 0; i < count; ++i) {
    std::vector<double> point = {rng.Uniform(), static_cast<double>(rng.Below(3))};
    for (size_t j = 0; j < extra; ++j) point.push_back(rng.Uniform());
    points.Append(point);
  }
  return points;
}

std::vector<double> Wave(const PointTable& points) {
  std::vector<double> targets;
  for (size_t i = 0; i < points.size(); ++i) {
    targets.push_back(std::sin(7.0 * points.column(0)[i]) + 0.3 * points.column(1)[i] - 0.3);
  }
  return targets;
}

void ExpectDerivatives(const PointTable& points, const LogParameters& parameters,
                       const HyperparameterPrior& prior, const std::vector<double>& logs) {
  const std::vector<double> targets = Wave(points);
  std::vector<double> gradient(parameters.size());
  std::vector<double> unused(parameters.size());
  LogPosterior(points, targets, prior, parameters, logs, gradient);
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < logs.size(); ++i) {
    const auto value_at = [&](double offset) {
      std::vector<double> moved = logs;
      moved[i] += offset;
      return LogPosterior(points, targets, prior, parameters, moved, unused);
    };
    EXPECT_NEAR(gradient[i], (value_at(kStep) - value_at(-kStep)) / (2 * kStep), 1e-5) << i;
  }
}

TEST(LogPosterior, GradientIsTheDerivativeOnMixedAndOnTiedAxes) {
  for (const size_t extra : {size_t{1}, LogParameters::kMaxOwnLengths}) {
    const PointTable points = MixedPoints(25, extra);
    const LogParameters parameters(points.num_axes());
    EXPECT_EQ(parameters.tied(), extra > 1);
    std::vector<double> logs(parameters.size(), 0.3);
    logs.back() = -4.0;
    ExpectDerivatives(points, parameters, DefaultPrior(), logs);
  }
}

TEST(LogPosterior, GradientIsTheDerivativeWithASumOverTheAxes) {
  ExpectDerivatives(MixedPoints(25, 1), LogParameters(3, true), AdditivePrior(),
                    {0.3, 0.8, -0.2, 0.1, -4.0, 0.6});
}

TEST(FitHyperparameters, FindsWhichAxesMatter) {
  const PointTable points = MixedPoints(40, 1);
  const KernelParameters kernel = FitHyperparameters(points, Wave(points), DefaultPrior());
  EXPECT_GT(kernel.weights[0], 10.0 * kernel.weights[2]);
  EXPECT_GT(kernel.weights[1], kernel.weights[2]);
  EXPECT_LT(kernel.noise, 1e-3);
}

TEST(FitHyperparameters, FindsNoise) {
  const PointTable points = MixedPoints(60, 0);
  Rng rng(1, 1);
  std::vector<double> targets;
  for (size_t i = 0; i < points.size(); ++i) targets.push_back(rng.Below(2) == 0 ? 1.0 : -1.0);
  const KernelParameters kernel = FitHyperparameters(points, targets, DefaultPrior());
  EXPECT_GT(kernel.noise, 0.3);
}

TEST(FitHyperparameters, TellsASumOverTheAxesFromWhatIsNone) {
  Rng rng(3, 3);
  PointTable points(4);
  std::vector<double> sums, products;
  for (int i = 0; i < 60; ++i) {
    std::vector<double> point;
    double sum = 0.0;
    double product = 1.5;
    for (size_t axis = 0; axis < points.num_axes(); ++axis) {
      point.push_back(rng.Uniform());
      sum += std::sin(9.0 * point.back());
      product *= 1.5 * std::sin(3.0 * point.back());
    }
    points.Append(point);
    sums.push_back(sum - 0.7);
    products.push_back(product - 1.0);
  }
  EXPECT_GT(FitHyperparameters(points, sums, AdditivePrior()).additive, 0.8);
  EXPECT_LT(FitHyperparameters(points, products, AdditivePrior()).additive, 0.5);
  EXPECT_EQ(FitHyperparameters(points, sums, DefaultPrior()).additive, 0.0);
}

// Where the likelihood says nothing the prior decides, and every number is finite.
TEST(FitHyperparameters, FitsWhateverThereIs) {
  const PointTable one = MixedPoints(1, 0);
  PointTable same(2);
  for (int i = 0; i < 20; ++i) same.Append(std::vector<double>{0.5, 1.0});
  const std::vector<double> zeros(20, 0.0);
  std::vector<double> alternating;
  for (int i = 0; i < 20; ++i) alternating.push_back(i % 2 == 0 ? 1.0 : -1.0);
  for (const KernelParameters& kernel :
       {FitHyperparameters(one, std::vector<double>{0.0}, DefaultPrior()),
        FitHyperparameters(same, zeros, DefaultPrior()),
        FitHyperparameters(same, alternating, DefaultPrior()),
        FitHyperparameters(same, alternating, AdditivePrior()),
        FitHyperparameters(PointTable(0), {}, AdditivePrior())}) {
    EXPECT_TRUE(std::isfinite(kernel.scale) && kernel.scale > 0.0);
    EXPECT_TRUE(std::isfinite(kernel.noise) && kernel.noise > 0.0);
    for (const double weight : kernel.weights) EXPECT_TRUE(std::isfinite(weight) && weight > 0.0);
  }
}

}  // namespace
}  // namespace hpo::sampler
