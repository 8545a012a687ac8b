#include "sampler/gaussian_process/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "tests/golden_file.h"

namespace hpo {
namespace {

TEST(YeoJohnson, AgreesWithSciPy) {
  const auto golden = ReadGolden("gaussian_process.json");
  for (const auto& test : golden["yeo_johnson"]) {
    for (size_t i = 0; i < test["values"].size(); ++i) {
      const double expected = test["expected"][i];
      EXPECT_NEAR(YeoJohnson(test["values"][i], test["power"]), expected,
                  1e-13 * std::max(std::abs(expected), 1.0))
          << test["power"] << " of " << test["values"][i];
    }
  }
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
    const std::vector<double> scaled = NormalizeLosses(losses);
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
    return LossPerStep(losses, NormalizeLosses(losses));
  };
  EXPECT_NEAR(of({5.0, 3.0, 4.0}), std::sqrt(2.0 / 3.0), 1e-9) << "their deviation";
  const std::vector<double> losses = {1.0, 1.01, 1.3, 2.0, 2.4, 7.0, 40.0};
  std::vector<double> thousandfold;
  for (const double loss : losses) thousandfold.push_back(1000.0 * loss);
  EXPECT_NEAR(of(thousandfold), 1000.0 * of(losses), 1e-6 * of(losses));
  EXPECT_GT(of(losses), 0.0);
  EXPECT_LT(of(losses), 3.0) << "near the best, not over all";
  EXPECT_EQ(of({2.0, 2.0}), 0.0);
  EXPECT_EQ(of({}), 0.0);
}

// Without the transformation the good losses would be 1e-5 deviations apart.
TEST(NormalizeLosses, ShowsDifferencesBesideAnEnormousLoss) {
  const std::vector<double> scaled =
      NormalizeLosses(std::vector<double>{1.0, 2.0, 3.0, 4.0, 5.0, 1e6, 3e5, 40.0, 900.0});
  EXPECT_GT(scaled[4] - scaled[0], 1e-4);
}

TEST(NormalizeLosses, EqualLossesAreAllZero) {
  EXPECT_EQ(NormalizeLosses(std::vector<double>{4.0}), std::vector<double>{0.0});
  EXPECT_EQ(NormalizeLosses(std::vector<double>(3, 0.1)), std::vector<double>(3, 0.0));
  EXPECT_TRUE(NormalizeLosses({}).empty());
}

}  // namespace
}  // namespace hpo
