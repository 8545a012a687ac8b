#include "worker/trainer/models/layers/nf4.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

// Of the standard normal distribution, by bisection.
double Quantile(double probability) {
  double low = -10.0;
  double high = 10.0;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2.0;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return low;
}

// As bitsandbytes makes them (create_normal_map): eight quantiles above zero and seven below, from
// 0.9677083 to one half in equal steps, zero, all over the largest.
TEST(Nf4, ValuesAreTheQuantilesThatThePaperDefines) {
  constexpr double kOffset = 0.9677083;
  std::vector<double> values = {0.0};
  for (const int steps : {8, 7}) {
    for (int i = 0; i < steps; ++i) {
      const double value = Quantile(kOffset + (0.5 - kOffset) * i / steps);
      values.push_back(steps == 8 ? value : -value);
    }
  }
  std::sort(values.begin(), values.end());
  ASSERT_EQ(values.size(), kNf4Values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(kNf4Values[i], values[i] / values.back(), 1e-6) << i;
  }
}

std::vector<float> RoundTrip(const std::vector<float>& values) {
  const auto blocks = static_cast<size_t>(Nf4Blocks(static_cast<int64_t>(values.size())));
  std::vector<uint8_t> codes(blocks * memory::kNf4Block / 2);
  std::vector<float> scales(blocks);
  QuantizeNf4(values, codes, scales);
  std::vector<float> back(values.size());
  DequantizeNf4(codes, scales, back);
  return back;
}

TEST(Nf4, TheSixteenValuesTimesAScaleComeBackExactly) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(0.375f * kNf4Values[static_cast<size_t>(i) % 16]);
  EXPECT_EQ(RoundTrip(values), values);
}

TEST(Nf4, TheFirstOfTwoIsInTheHighHalf) {
  std::vector<float> values(64, 0.0f);
  values[0] = 2.0f;   // code 15
  values[1] = -2.0f;  // code 0
  std::vector<uint8_t> codes(32);
  std::vector<float> scales(1);
  QuantizeNf4(values, codes, scales);
  EXPECT_EQ(scales[0], 2.0f);
  EXPECT_EQ(codes[0], 0xf0);
  EXPECT_EQ(codes[1], 0x77);
}

// A scale for each block; the last one may be short; a block of zeros stays zero.
TEST(Nf4, EveryBlockHasItsOwnScale) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(100.0f * kNf4Values[static_cast<size_t>(i) % 16]);
  for (int i = 0; i < 64; ++i) values.push_back(0.0f);
  for (int i = 0; i < 5; ++i) values.push_back(-0.01f);
  EXPECT_EQ(RoundTrip(values), values);
}

// Half the widest gap of the values, of the block's largest.
TEST(Nf4, RoundsToTheNearest) {
  std::vector<float> values;
  for (int i = 0; i < 640; ++i) values.push_back(std::sin(static_cast<float>(i)) * 0.3f);
  const std::vector<float> back = RoundTrip(values);
  for (size_t i = 0; i < values.size(); ++i) {
    float nearest = 10.0f;
    float scale = 0.0f;
    for (size_t k = i / 64 * 64; k < i / 64 * 64 + 64; ++k) {
      scale = std::max(scale, std::fabs(values[k]));
    }
    for (const float value : kNf4Values) {
      nearest = std::min(nearest, std::fabs(value * scale - values[i]));
    }
    EXPECT_NEAR(std::fabs(back[i] - values[i]), nearest, 1e-6) << i;
  }
}

}  // namespace
}  // namespace hpo::trainer
