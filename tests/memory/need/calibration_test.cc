#include "memory/need/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace hpo::memory {
namespace {

const ResidualClass kCpu{.device_kind = "cpu"};
const ResidualClass kCard{.device_kind = "cuda", .band = NeedBand::kAbove10GiB};

Residual Exact(double score, const ResidualClass& of = kCpu) {
  return {.residual_class = of, .score = score};
}

Residual Censored(double score, const ResidualClass& of = kCpu) {
  return {.residual_class = of, .score = score, .censored = true};
}

// The table after `residuals`, in order.
MarginTable Calibrate(const std::vector<Residual>& residuals,
                      const CalibrationOptions& options = {}) {
  MarginTable table(options);
  for (const Residual& residual : residuals) table.Observe(residual);
  return table;
}

// Skewed, with a long tail upwards: exponential of mean 0.01.
double DrawScore(Rng& rng) { return -0.01 * std::log1p(-rng.Uniform()); }

MemoryEstimate Estimate(Bytes live, Bytes reserved, Bytes base) {
  MemoryEstimate estimate;
  estimate.live_peak = live;
  estimate.reserved_peak = reserved;
  estimate.base = base;
  estimate.needed_limit = reserved + base;
  return estimate;
}

TEST(MarginTable, StartsColdByClass) {
  const MarginTable table;
  const std::pair<ResidualClass, double> cases[] = {
      {kCpu, 0.0}, {kCard, 0.03}, {{.device_kind = "another"}, 0.03}};
  for (const auto& [residual_class, factor] : cases) {
    EXPECT_EQ(table.Factor(residual_class), factor) << residual_class.device_kind;
  }
}

TEST(MarginTable, TakesTheKthSmallestOnceThereAreEnough) {
  // alpha = 10 %: the first n with k <= n is 9.
  const CalibrationOptions options{.alpha = 0.1, .smallest_alpha = 0.1};
  MarginTable table(options);
  for (int i = 1; i <= 8; ++i) {
    table.Observe(Exact(-0.01 * i, kCard));
    EXPECT_EQ(table.Factor(kCard), 0.03) << "cold start while the rank is infinite, n = " << i;
  }
  table.Observe(Exact(0.004, kCard));
  EXPECT_EQ(table.Factor(kCard), 0.004);
  // 99 scores, the rank is the 90th; all but the old large ones are recent.
  MarginTable many(options);
  for (int i = 0; i < 20; ++i) many.Observe(Exact(0.1 + 0.01 * i));
  for (int i = 0; i < 79; ++i) many.Observe(Exact(0.0001 * i));
  EXPECT_NEAR(many.Factor(kCpu), 0.2, 1e-12);
}

TEST(MarginTable, ClassesLearnApart) {
  MarginTable table;
  table.Observe(Exact(0.5, kCard));
  EXPECT_EQ(table.Factor(kCard), 0.5);
  ResidualClass smaller = kCard;
  smaller.band = NeedBand::kBelow2GiB;
  EXPECT_EQ(table.Factor(smaller), 0.03);
  EXPECT_EQ(table.Factor(kCpu), 0.0);
}

TEST(MarginTable, IsNeverBelowARecentUnderEstimate) {
  MarginTable table;
  for (int i = 0; i < 300; ++i) table.Observe(Exact(0.001));
  ASSERT_EQ(table.Factor(kCpu), 0.001);
  table.Observe(Exact(0.08));
  for (size_t i = 1; i < MarginTable::kRecentScores; ++i) {
    EXPECT_EQ(table.Factor(kCpu), 0.08) << "after " << i;
    table.Observe(Exact(0.001));
  }
  table.Observe(Exact(0.001));
  EXPECT_LT(table.Factor(kCpu), 0.08) << "301 scores say that it is rarer than alpha";
}

TEST(MarginTable, AnOverestimateNeverEarnsLessThanNoMargin) {
  MarginTable table;
  for (int i = 0; i < 500; ++i) table.Observe(Exact(-0.3, kCard));
  EXPECT_EQ(table.Factor(kCard), 0.0);
}

TEST(MarginTable, UnderestimatesInARowMakeItCautious) {
  const CalibrationOptions fixed{.adaptation = 0.0};
  MarginTable adaptive;
  MarginTable constant(fixed);
  Rng rng(7, 0);
  // The world changes: scores grow, so that a fixed rank exceeds alpha again and again.
  int exceeded_adaptive = 0;
  int exceeded_constant = 0;
  for (int i = 0; i < 2000; ++i) {
    const double score = DrawScore(rng) * (1.0 + 0.001 * i);
    if (i >= 200) {
      exceeded_adaptive += score > adaptive.Factor(kCpu) ? 1 : 0;
      exceeded_constant += score > constant.Factor(kCpu) ? 1 : 0;
    }
    adaptive.Observe(Exact(score));
    constant.Observe(Exact(score));
  }
  EXPECT_LT(exceeded_adaptive, exceeded_constant);
  EXPECT_LE(exceeded_adaptive, 36) << "2 % of 1800";
}

// Exchangeable scores: the share of next scores above the factor is at most alpha, whatever the
// alpha and whatever the number of scores before.
TEST(MarginTable, CoversExchangeableScores) {
  constexpr int kStudies = 4000;
  for (const double alpha : {0.02, 0.1}) {
    for (const int n : {60, 200}) {
      int exceeded = 0;
      for (uint64_t seed = 0; seed < kStudies; ++seed) {
        Rng rng(seed, static_cast<uint64_t>(n));
        MarginTable table(CalibrationOptions{.alpha = alpha});
        for (int i = 0; i < n; ++i) table.Observe(Exact(DrawScore(rng)));
        exceeded += DrawScore(rng) > table.Factor(kCpu) ? 1 : 0;
      }
      const double share = static_cast<double>(exceeded) / kStudies;
      const double deviation = std::sqrt(alpha * (1.0 - alpha) / kStudies);
      EXPECT_LE(share, alpha + 3.0 * deviation) << "alpha " << alpha << ", n " << n;
    }
  }
}

// The same with a margin that does not grow without need: it stays near the true quantile.
TEST(MarginTable, IsNotMuchMoreCautiousThanNeeded) {
  constexpr int kStudies = 200;
  double sum = 0.0;
  for (uint64_t seed = 0; seed < kStudies; ++seed) {
    Rng rng(seed, 5);
    MarginTable table;
    for (int i = 0; i < 800; ++i) table.Observe(Exact(DrawScore(rng)));
    sum += table.Factor(kCpu);
  }
  const double quantile_98 = -0.01 * std::log(0.02);
  EXPECT_LT(sum / kStudies, 2.0 * quantile_98);
}

TEST(MarginTable, WorseEvidenceNeverLowersTheFactor) {
  const CalibrationOptions fixed{.adaptation = 0.0};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, 1);
    std::vector<Residual> residuals;
    const int n = 1 + static_cast<int>(rng.Below(150));
    for (int i = 0; i < n; ++i) residuals.push_back(Exact(DrawScore(rng) - 0.01, kCard));
    const double before = Calibrate(residuals, fixed).Factor(kCard);
    std::vector<Residual> worse = residuals;
    worse[rng.Below(worse.size())].score += rng.Uniform();
    EXPECT_GE(Calibrate(worse, fixed).Factor(kCard), before) << "seed " << seed;
    // With adaptation, of the newest score.
    const double adapted = Calibrate(residuals).Factor(kCard);
    residuals.back().score += rng.Uniform();
    EXPECT_GE(Calibrate(residuals).Factor(kCard), adapted) << "seed " << seed;
  }
}

TEST(MarginTable, AnOomNeverLowersTheFactor) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed, 2);
    MarginTable table(CalibrationOptions{.alpha = 0.05});
    const uint64_t n = rng.Below(1200);
    for (uint64_t i = 0; i < n; ++i) table.Observe(Exact(DrawScore(rng) - 0.01, kCard));
    for (int i = 0; i < 5; ++i) {
      const double before = table.Factor(kCard);
      const double bound = 0.05 * rng.Uniform();
      table.Observe(Censored(bound, kCard));
      EXPECT_GE(table.Factor(kCard), before) << "seed " << seed;
      EXPECT_GE(table.Factor(kCard), bound) << "seed " << seed;
    }
  }
}

TEST(MarginTable, EqualsARebuildAndForgetsTheOldest) {
  Rng rng(3, 3);
  std::vector<Residual> residuals;
  MarginTable folded;
  for (size_t i = 0; i < MarginTable::kMaxScores + 500; ++i) {
    Residual next = rng.Uniform() < 0.1 ? Censored(DrawScore(rng)) : Exact(DrawScore(rng), kCard);
    residuals.push_back(next);
    folded.Observe(next);
  }
  EXPECT_EQ(Calibrate(residuals), folded);
  MarginTable forgetful;
  forgetful.Observe(Exact(9.0));
  for (size_t i = 0; i < MarginTable::kMaxScores; ++i) forgetful.Observe(Exact(0.01));
  EXPECT_EQ(forgetful.Factor(kCpu), 0.01);
}

TEST(MarginTable, WhatIsNotANumberTeachesNothing) {
  MarginTable table;
  table.Observe(Exact(std::nan("")));
  table.Observe(Exact(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(table, MarginTable());
}

TEST(MarginTable, TheLargestNeedIsTheLargestThatFitsWithItsMargin) {
  MarginTable margins;
  margins.Observe(Exact(1.0, kCard));  // above 10 GiB: 100 %; else 3 %
  const Bytes no_bound{INT64_MAX};
  const std::pair<Bytes, Bytes> cases[] = {{GiB(40), GiB(20)},
                                           {GiB(20), GiB(10)},
                                           {GiB(12), GiB(10)},
                                           {Bytes{1030}, Bytes{1000}},
                                           {Bytes{0}, Bytes{0}}};
  for (const auto& [usable, largest] : cases) {
    EXPECT_EQ(margins.LargestNeed(kCard.device_kind, usable, no_bound), largest) << usable.count;
    EXPECT_EQ(margins.LargestNeed(kCard.device_kind, usable, GiB(1)), std::min(largest, GiB(1)));
  }
  margins.Observe(Exact(1.0, {.device_kind = "cuda", .band = NeedBand::kFrom2To10GiB}));
  EXPECT_EQ(margins.LargestNeed(kCard.device_kind, GiB(3), no_bound), GiB(2) - Bytes{1});
  EXPECT_EQ(margins.LargestNeed(kCard.device_kind, GiB(40), GiB(20) - Bytes{1}),
            GiB(20) - Bytes{1});
}

TEST(ClassOf, BandsByPredictedNeed) {
  const std::pair<Bytes, NeedBand> cases[] = {{Bytes{0}, NeedBand::kBelow2GiB},
                                              {GiB(2) - Bytes{1}, NeedBand::kBelow2GiB},
                                              {GiB(2), NeedBand::kFrom2To10GiB},
                                              {GiB(10), NeedBand::kFrom2To10GiB},
                                              {GiB(10) + Bytes{1}, NeedBand::kAbove10GiB}};
  for (const auto& [needed, band] : cases) {
    MemoryEstimate estimate;
    estimate.needed_limit = needed;
    const ResidualClass of{.device_kind = "cuda", .band = band};
    EXPECT_EQ(ClassOf(estimate, "cuda"), of) << needed.count;
    // Neighbouring batches are fragile or not: their margins are the same.
    estimate.fragile = true;
    EXPECT_EQ(ClassOf(estimate, "cuda"), of) << needed.count;
  }
}

TEST(ExactScore, ComparesLikeWithLike) {
  const MemoryEstimate predicted = Estimate(GiB(8), GiB(10), GiB(1));
  struct Case {
    MemoryReport report;
    std::optional<double> score;
  };
  const Case cases[] = {
      {{}, std::nullopt},
      {{.live_peak = GiB(10)}, 0.25},
      {{.live_peak = GiB(6)}, -0.25},
      {{.reserved_peak = GiB(11)}, 0.1},
      {{.device_peak = GiB(22)}, 1.0},
      // A limit that keeps the cache small does not hide that more is alive.
      {{.live_peak = GiB(10), .reserved_peak = GiB(10), .device_peak = GiB(11)}, 0.25},
  };
  for (const Case& c : cases) {
    const std::optional<double> score = ExactScore(predicted, c.report);
    ASSERT_EQ(score.has_value(), c.score.has_value());
    EXPECT_NEAR(score.value_or(0.0), c.score.value_or(0.0), 1e-12);
  }
  EXPECT_EQ(ExactScore(MemoryEstimate{}, {.live_peak = GiB(1)}), std::nullopt);
}

TEST(CensoredScore, BoundsOnlyAboveThePrediction) {
  const MemoryEstimate predicted = Estimate(GiB(8), GiB(9), GiB(1));
  EXPECT_NEAR(*CensoredScore(predicted, GiB(10)), 0.02, 1e-12);
  EXPECT_NEAR(*CensoredScore(predicted, GiB(15)), 0.53, 1e-12);
  EXPECT_EQ(CensoredScore(predicted, GiB(10) - Bytes{1}), std::nullopt);
  EXPECT_EQ(CensoredScore(MemoryEstimate{}, GiB(1)), std::nullopt);
}

TEST(WithMargin, RoundsUpAndStaysInRange) {
  EXPECT_EQ(WithMargin(Bytes{1000}, 0.0), Bytes{1000});
  EXPECT_EQ(WithMargin(Bytes{1001}, 0.5), Bytes{1502});
  EXPECT_EQ(WithMargin(Bytes{1000}, -0.5), Bytes{1000});
  EXPECT_EQ(WithMargin(Bytes{INT64_MAX - 10}, 0.5), Bytes{INT64_MAX});
}

}  // namespace
}  // namespace hpo::memory
