#include "sampler/tpe/parzen_axes.h"

#include <cmath>

#include "gtest/gtest.h"
#include "tests/golden_file.h"

namespace hpo::sampler {
namespace {

Coordinate CoordinateAt(double position) { return {.present = true, .at = position, .cell = {}}; }

std::vector<double> BandwidthsOf(const std::vector<double>& positions) {
  ContinuousAxis axis;
  PaddedColumn<double> ranks;
  for (size_t i = 0; i < positions.size(); ++i) {
    axis.Insert(i, i, CoordinateAt(positions[i]));
    ranks.Insert(i, static_cast<double>(i));
  }
  axis.Refit({RecencyRamp::Of(positions.size()), ranks});
  std::vector<double> bandwidths;
  for (size_t i = 0; i < positions.size(); ++i) bandwidths.push_back(axis.KernelOf(i).bandwidth);
  return bandwidths;
}

// The file has Optuna's on [-1, 1], also with options that we do not have.
TEST(ContinuousAxis, BandwidthsAgreeWithOptuna) {
  int num_cases = 0;
  const auto golden = ReadGolden("parzen.json");
  for (const auto& test : golden["bandwidths"]) {
    if (!test["magic_clip"] || test["use_ends"]) continue;
    SCOPED_TRACE(test.dump());
    ++num_cases;
    std::vector<double> positions;
    for (const double value : test["positions"]) positions.push_back(0.5 * (value + 1.0));
    const std::vector<double> bandwidths = BandwidthsOf(positions);
    const std::vector<double> expected = test["expected"];
    ASSERT_EQ(bandwidths.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(2.0 * bandwidths[i], expected[i], 1e-12);
    }
  }
  EXPECT_EQ(num_cases, 5);
}

TEST(ContinuousAxis, BandwidthsOfEqualPositionsAreTheFloor) {
  for (const double bandwidth : BandwidthsOf(std::vector<double>(7, 0.3))) {
    EXPECT_DOUBLE_EQ(bandwidth, 1.0 / 9.0);
  }
  EXPECT_DOUBLE_EQ(BandwidthsOf(std::vector<double>(500, 0.3)).front(), 0.01);
}

}  // namespace
}  // namespace hpo::sampler
