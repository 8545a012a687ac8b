#include "sampler/space/numeric_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "common/space/search_space_validation.h"
#include "gtest/gtest.h"

namespace hpo::sampler {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr int64_t kMaxExact = int64_t{1} << 53;

const Domain kDomains[] = {
    FloatDomain{.low = -2.0, .high = 5.0},
    FloatDomain{.low = 1e-6, .high = 1e-4, .log = true},
    FloatDomain{.low = 0.0, .high = 1.0, .step = 0.1},
    FloatDomain{.low = 0.0, .high = 1.0, .step = 0.3},  // ends before high
    FloatDomain{.low = -kLargest, .high = kLargest},
    FloatDomain{.low = kSmallest, .high = kLargest, .log = true},
    FloatDomain{.low = 0.0, .high = kSmallest},
    FloatDomain{.low = 1.0, .high = std::nextafter(1.0, 2.0)},
    FloatDomain{.low = 0.0, .high = 0x1.0p53, .step = 1.0},
    FloatDomain{.low = -kLargest, .high = -1.0, .step = kLargest},
    FloatDomain{.low = 0.0, .high = kLargest, .step = kLargest / 4.0},
    IntDomain{.low = 1, .high = 8},
    IntDomain{.low = 128, .high = 512, .step = 32},
    IntDomain{.low = 3, .high = 10, .step = 4},  // 3, 7
    IntDomain{.low = 5, .high = 5},
    IntDomain{.low = 1, .high = 1, .log = true},
    IntDomain{.low = 1, .high = 1000, .log = true},
    IntDomain{.low = -kMaxExact, .high = kMaxExact},
    IntDomain{.low = 1, .high = kMaxExact, .log = true},
    IntDomain{.low = -kMaxExact, .high = kMaxExact, .step = kMaxExact},
};

NumericScale ScaleOf(const Domain& domain) {
  const auto* real = std::get_if<FloatDomain>(&domain);
  return real != nullptr ? NumericScale(*real) : NumericScale(std::get<IntDomain>(domain));
}

TEST(NumericScale, DrawsLieInTheirDomainAndComeBack) {
  for (const Domain& domain : kDomains) {
    SCOPED_TRACE(FormatDomain(domain));
    ASSERT_TRUE(ValidateDomain(domain).ok());
    const NumericScale scale = ScaleOf(domain);
    Rng rng(1, 1);
    for (int i = 0; i < 200; ++i) {
      const ParamValue value = DrawUniform(domain, rng);
      ASSERT_TRUE(Contains(domain, value)) << FormatParam(value);
      const Coordinate at = scale.At(*AsNumber(value));
      ASSERT_GE(at.at, 0.0);
      ASSERT_LE(at.at, 1.0);
      const ParamValue again = NearestValue(domain, scale.ValueAt(at.at));
      ASSERT_TRUE(Contains(domain, again));
      ASSERT_TRUE(!scale.grid() || again == value);
    }
  }
}

TEST(NumericScale, EveryPositionIsAValue) {
  for (const Domain& domain : kDomains) {
    SCOPED_TRACE(FormatDomain(domain));
    const NumericScale scale = ScaleOf(domain);
    for (const double position : {0.0, 1e-12, 0.25, 0.5, 1.0 - 1e-12, 1.0}) {
      EXPECT_TRUE(Contains(domain, NearestValue(domain, scale.ValueAt(position)))) << position;
    }
  }
}

TEST(NumericScale, CellsTileTheRange) {
  for (const Domain& domain : {Domain(IntDomain{.low = 128, .high = 512, .step = 32}),
                               Domain(IntDomain{.low = 1, .high = 50, .log = true})}) {
    SCOPED_TRACE(FormatDomain(domain));
    const IntDomain& integers = std::get<IntDomain>(domain);
    const NumericScale scale(integers);
    ASSERT_TRUE(scale.grid());
    double edge = 0.0;
    for (int64_t value = integers.low; value <= integers.high; value += integers.step) {
      const Coordinate at = scale.At(static_cast<double>(value));
      EXPECT_NEAR(at.cell.low, edge, 1e-12);
      EXPECT_GT(at.at, at.cell.low);
      EXPECT_LT(at.at, at.cell.high);
      edge = at.cell.high;
    }
    EXPECT_DOUBLE_EQ(edge, 1.0);
  }
}

TEST(NumericScale, CoversWholeCellsOfAPart) {
  const NumericScale scale(IntDomain{.low = 1, .high = 10});
  EXPECT_DOUBLE_EQ(scale.Covering(3, 5).low, 0.2);
  EXPECT_DOUBLE_EQ(scale.Covering(3, 5).high, 0.5);
  const NumericScale real(FloatDomain{.low = 0.0, .high = 4.0});
  EXPECT_DOUBLE_EQ(real.Covering(1.0, 2.0).low, 0.25);
  EXPECT_DOUBLE_EQ(real.Covering(1.0, 2.0).high, 0.5);
}

TEST(NumericScale, LogarithmsAreEvenlySpaced) {
  const NumericScale scale = NumericScale::Log(1e-6, 1e-2);
  EXPECT_FALSE(scale.grid());
  EXPECT_NEAR(scale.At(1e-4).at, 0.5, 1e-12);
  EXPECT_NEAR(scale.ValueAt(0.25), 1e-5, 1e-17);
}

TEST(DrawUniform, NoGridValueIsBeyondTheHighEnd) {
  // 0.1 + 6 * 0.1 is 0.7000000000000001.
  const FloatDomain domain{.low = 0.1, .high = 0.7, .step = 0.1};
  Rng rng(1, 1);
  double largest = 0.0;
  for (int i = 0; i < 100; ++i)
    largest = std::max(largest, std::get<double>(DrawUniform(domain, rng)));
  EXPECT_EQ(largest, 0.7);
  EXPECT_EQ(std::get<double>(ValueAtPart(domain, 0.999)), 0.7);
}

// Optuna 5.0's equal-width bins, and not half-width ones at the ends.
TEST(DrawUniform, GridValuesAreEquallyLikely) {
  const Domain domains[] = {
      IntDomain{.low = 0, .high = 4}, IntDomain{.low = 10, .high = 90, .step = 20},
      FloatDomain{.low = 0.0, .high = 1.0, .step = 0.25},
      CategoricalDomain{{int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5}}}};
  for (const Domain& domain : domains) {
    SCOPED_TRACE(FormatDomain(domain));
    std::map<ParamValue, int> counts;
    Rng rng(11, 3);
    for (int i = 0; i < 20'000; ++i) ++counts[DrawUniform(domain, rng)];
    ASSERT_EQ(counts.size(), 5u);
    for (const auto& [value, count] : counts) EXPECT_NEAR(count, 4000, 250) << FormatParam(value);
  }
}

TEST(DrawUniform, LogarithmicIntegersFollowTheirCells) {
  const IntDomain domain{.low = 1, .high = 4, .log = true};
  std::map<int64_t, int> counts;
  Rng rng(11, 4);
  constexpr int kDraws = 40'000;
  for (int i = 0; i < kDraws; ++i) ++counts[std::get<int64_t>(DrawUniform(domain, rng))];
  for (int64_t n = 1; n <= 4; ++n) {
    const double x = static_cast<double>(n);
    const double expected = std::log((x + 0.5) / (x - 0.5)) / std::log(4.5 / 0.5);
    EXPECT_NEAR(counts[n] / static_cast<double>(kDraws), expected, 0.01) << n;
  }
}

TEST(NearestValue, RoundsToTheGridAndClips) {
  const Domain lengths = IntDomain{.low = 128, .high = 520, .step = 32};
  const std::pair<double, int64_t> cases[] = {{0.0, 128},   {143.9, 128}, {144.0, 160},
                                              {511.0, 512}, {1e300, 512}, {-1e300, 128}};
  for (const auto& [value, expected] : cases) {
    EXPECT_EQ(NearestValue(lengths, value), ParamValue(expected)) << value;
  }
  EXPECT_EQ(NearestValue(FloatDomain{.low = 0.0, .high = 1.0, .step = 0.3}, 2.0),
            ParamValue(3 * 0.3));
}

TEST(ValueAtPart, GivesEachGridValueAndChoiceAnEqualPart) {
  const Domain domains[] = {
      CategoricalDomain{{std::string("a"), std::string("b"), std::string("c"), std::string("d")}},
      IntDomain{.low = -3, .high = 7, .step = 3},
      FloatDomain{.low = 0.5, .high = 1.3, .step = 0.25}, CategoricalDomain{{true}}};
  for (const Domain& domain : domains) {
    std::map<ParamValue, int> counts;
    for (int i = 0; i < 1000; ++i) ++counts[ValueAtPart(domain, i / 1000.0)];
    const size_t num_values = static_cast<size_t>(*NumValues(domain));
    EXPECT_EQ(counts.size(), num_values);
    for (const auto& [value, count] : counts) {
      EXPECT_TRUE(Contains(domain, value));
      EXPECT_EQ(count, 1000 / static_cast<int>(num_values));
    }
  }
}

TEST(ValueAtPart, ContinuousValuesRiseWithThePart) {
  const FloatDomain plain{.low = -2.0, .high = 6.0};
  EXPECT_EQ(ValueAtPart(plain, 0.25), ParamValue(0.0));
  const FloatDomain log{.low = 1e-4, .high = 1.0, .log = true};
  EXPECT_NEAR(std::get<double>(ValueAtPart(log, 0.5)), 1e-2, 1e-9);
  const IntDomain log_int{.low = 1, .high = 1000, .log = true};
  int64_t before = 0;
  for (int i = 0; i < 100; ++i) {
    const int64_t value = std::get<int64_t>(ValueAtPart(log_int, i / 100.0));
    EXPECT_GE(value, before);
    EXPECT_TRUE(Contains(log_int, value));
    before = value;
  }
  EXPECT_GT(before, 800);
}

// The last part before 1 does not round over the end.
TEST(ValueAtPart, StaysInTheDomainAtTheEnds) {
  const double last = std::nextafter(1.0, 0.0);
  const Domain domains[] = {
      FloatDomain{.low = 0.0, .high = 1.0, .step = 0.1}, FloatDomain{.low = 3.0, .high = 3.0},
      IntDomain{.low = 0, .high = int64_t{1} << 53}, IntDomain{.low = 4, .high = 4, .log = true},
      FloatDomain{.low = -1e308, .high = 1e308}};
  for (const Domain& domain : domains) {
    for (const double part : {0.0, last}) {
      EXPECT_TRUE(Contains(domain, ValueAtPart(domain, part))) << FormatDomain(domain);
    }
  }
}

}  // namespace
}  // namespace hpo::sampler
