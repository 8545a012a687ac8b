#include "sampler/tpe/kernel_sums.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"
#include "sampler/numeric/truncated_normal.h"
#include "sampler/tpe/cell_kernels.h"

namespace hpo::sampler {
namespace {

PaddedColumn<double> Uniforms(size_t count, double low, double high, Rng& rng) {
  PaddedColumn<double> column;
  for (size_t i = 0; i < count; ++i) column.Insert(i, low + (high - low) * rng.Uniform());
  return column;
}

// Kernels on one axis, and on a second of three tabled kernels.
struct Mixture {
  explicit Mixture(size_t count) : size(count) {
    Rng rng(1, count);
    centre = Uniforms(count, 0.0, 1.0, rng);
    std::sort(&centre[0], &centre[0] + count);
    inverse = Uniforms(count, 1.0, 100.0, rng);
    scale = Uniforms(count, 0.1, 2.0, rng);
    log_norm = Uniforms(count, -2.0, 2.0, rng);
    for (size_t i = 0; i < count; ++i) {
      rank.Insert(i, static_cast<double>(count - 1 - i));
      kernel.Insert(i, static_cast<uint32_t>(rng.Below(3)));
    }
    bounds = BoundBlocks(centre, inverse);
    widest.assign(count / kKernelBlock + 1, 1.0);
    ramp = RecencyRamp::Of(count);
  }
  SortedKernels sorted() const {
    return {size, centre.data(), inverse.data(), scale.data(), rank.data(), widest.data()};
  }
  std::vector<JointTerm> TermsAt(double at) const {
    return {{.axis = {.centre = centre.data(),
                      .inverse = inverse.data(),
                      .log_norm = log_norm.data(),
                      .bounds = bounds.data()},
             .at = at},
            {.axis = {.kernel = kernel.data()}, .table = table}};
  }

  size_t size;
  PaddedColumn<double> centre, inverse, scale, rank, log_norm;
  PaddedColumn<uint32_t> kernel;
  std::vector<double> widest;
  std::vector<BlockBounds> bounds;
  double table[3] = {-0.5, -3.0, -kUnbounded};
  RecencyRamp ramp;
};

const size_t kSizes[] = {0, 1, 2, 7, 8, 25, 31, 32, 33, 100, 1000};

TEST(SumMarginal, IsTheSumOfAllKernels) {
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    const Mixture mixture(size);
    for (const double at : {0.0, 0.3, 1.0}) {
      double expected = 0.0;
      for (size_t i = 0; i < size; ++i) {
        const double z = (at - mixture.centre[i]) * mixture.inverse[i];
        expected +=
            mixture.ramp.Weight(mixture.rank[i]) * mixture.scale[i] * std::exp(-0.5 * z * z);
      }
      std::vector<MarginalPoint> points = {{.at = at}};
      SumMarginal(mixture.sorted(), mixture.ramp, kUnbounded, points);
      EXPECT_NEAR(points[0].sum.Total(), expected, 1e-13 * (expected + 1e-3));
    }
  }
}

TEST(SumMarginal, LeavesOutWhatIsBeyondReach) {
  Mixture mixture(64);
  mixture.widest = {0.01, 0.01};
  std::vector<MarginalPoint> points = {{.at = mixture.centre[0]}};
  SumMarginal(mixture.sorted(), mixture.ramp, 1.0, points);
  const double of_first = points[0].sum.Total();
  mixture.size = 32;
  points = {{.at = mixture.centre[0]}};
  SumMarginal(mixture.sorted(), mixture.ramp, kUnbounded, points);
  EXPECT_EQ(points[0].sum.Total(), of_first);
}

// Kernels of the least bandwidth, close together below 0.5 and further apart above; among those
// below, one of another bandwidth where `odd`.
Mixture Crowd(bool odd) {
  Mixture mixture(6000);
  Rng rng(2, 0);
  for (size_t i = 0; i < mixture.size; ++i) {
    mixture.centre[i] = rng.Uniform() * (i < 5500 ? 0.5 : 1.0);
    mixture.inverse[i] = odd && i == 1000 ? 80.0 : 100.0;
  }
  std::sort(&mixture.centre[0], &mixture.centre[0] + mixture.size);
  mixture.widest.assign(mixture.size / kKernelBlock + 1, 1.0 / 100.0);
  if (odd) mixture.widest[1000 / kKernelBlock] = 1.0 / 80.0;
  return mixture;
}

TEST(FoldRuns, LeavesTheSumAsItWas) {
  for (const bool odd : {false, true}) {
    const Mixture mixture = Crowd(odd);
    SortedKernels kernels = mixture.sorted();
    kernels.run = RunLength(kernels.size);
    ASSERT_EQ(kernels.run, 8u);
    const std::vector<FoldedRuns> folds = FoldRuns(kernels, 1.0 / 100.0, mixture.ramp);
    ASSERT_EQ(folds.size(), 93u);
    const auto folded = std::count_if(folds.begin(), folds.end(),
                                      [](const FoldedRuns& fold) { return fold.folded; });
    EXPECT_GT(folded, 75);  // not those above 0.5
    EXPECT_LT(folded, 90);
    EXPECT_EQ(folds[1000 / 64].folded, !odd);
    for (const double at : {0.0, 0.25, 0.499, 0.51, 0.55, 0.8}) {
      SCOPED_TRACE(at);
      std::vector<MarginalPoint> points = {{.at = at}, {.at = at}};
      SumMarginal(kernels, mixture.ramp, 10.0, {&points[0], 1});
      kernels.folds = folds.data();
      kernels.num_folds = folds.size();
      SumMarginal(kernels, mixture.ramp, 10.0, {&points[1], 1});
      const double expected = points[0].sum.Total();
      EXPECT_NEAR(points[1].sum.Total(), expected, 1e-7 * (expected + 1.0));
      if (at < 0.5) {
        EXPECT_NE(points[1].sum.Total(), expected);
      }
      kernels.num_folds = 0;
    }
  }
}

TEST(FoldRuns, TakesWholeRunsOfSomeThousandKernels) {
  const std::pair<size_t, size_t> cases[] = {{0, 0},    {4095, 0},  {4096, 8},
                                             {8191, 8}, {8192, 16}, {100'000, 128}};
  for (const auto& [kernels, run] : cases) EXPECT_EQ(RunLength(kernels), run) << kernels;
}

TEST(SumJoint, IsTheSumOfAllProducts) {
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    const Mixture mixture(size);
    for (const double reference : {-700.0, -3.0, 0.0, 20.0}) {
      double expected = 0.0;
      for (size_t i = 0; i < size; ++i) {
        const double z = (0.4 - mixture.centre[i]) * mixture.inverse[i];
        expected += mixture.ramp.Weight(mixture.rank[i]) *
                    std::exp(-0.5 * z * z - mixture.log_norm[i] + mixture.table[mixture.kernel[i]]);
      }
      const std::vector<JointTerm> terms = mixture.TermsAt(0.4);
      std::vector<JointPoint> points = {
          {.terms = terms.data(), .num_terms = terms.size(), .reference = reference}};
      SumJoint(mixture.rank, mixture.ramp, points);
      EXPECT_NEAR(std::exp(points[0].reference) * points[0].sum.Total(), expected,
                  1e-13 * (expected + 1e-3));
    }
  }
}

// The rest of a block has no part in the sum, nor in what the sum refers to.
TEST(SumJoint, HoldsOutFarBelowWhatADoubleHolds) {
  const Mixture mixture(3);
  std::vector<JointTerm> terms = mixture.TermsAt(0.4);
  const double table[3] = {-2000.0, -2000.0, -2000.0};
  terms[1].table = table;
  std::vector<JointPoint> points = {
      {.terms = terms.data(), .num_terms = terms.size(), .reference = -2100.0}};
  SumJoint(mixture.rank, mixture.ramp, points);
  EXPECT_LT(points[0].reference, -1990.0);
  EXPECT_GT(points[0].sum.Total(), 0.9);
}

TEST(SumJoint, LeavesOutBlocksBelowTheLimit) {
  const Mixture mixture(32);
  std::vector<JointTerm> terms = mixture.TermsAt(0.4);
  terms[0].limit = 1000.0;
  std::vector<JointPoint> points = {{.terms = terms.data(), .num_terms = terms.size()}};
  SumJoint(mixture.rank, mixture.ramp, points);
  EXPECT_EQ(points[0].sum.Total(), 0.0);
}

TEST(SumJoint, LeavesOutBlocksBeyondTheSquares) {
  const Mixture mixture(32);
  double widest = 0.0;
  for (size_t i = 0; i < mixture.size; ++i) widest = std::max(widest, 1.0 / mixture.inverse[i]);
  const double last = mixture.centre[31];
  const double z = 0.3 / widest;
  for (const double at : {mixture.centre[0] - 0.3, last + 0.3}) {
    const std::vector<JointTerm> terms = mixture.TermsAt(at);
    for (const double squares : {0.99 * z * z, 1.01 * z * z}) {
      std::vector<JointPoint> points = {
          {.terms = terms.data(), .num_terms = terms.size(), .most_squares = squares}};
      SumJoint(mixture.rank, mixture.ramp, points);
      EXPECT_EQ(points[0].sum.Total() > 0.0, squares > z * z);
    }
  }
}

// Some of them lack the first axis.
TEST(SumJoint, OfManyPointsIsThatOfEach) {
  const Mixture mixture(100);
  std::vector<std::vector<JointTerm>> terms;
  std::vector<JointPoint> points;
  for (size_t i = 0; i < 11; ++i) terms.push_back(mixture.TermsAt(0.1 * static_cast<double>(i)));
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t lacks = i % 3 == 0 ? 1 : 0;
    points.push_back({.terms = terms[i].data() + lacks,
                      .num_terms = terms[i].size() - lacks,
                      .most_squares = 100.0});
  }
  std::vector<JointPoint> alone = points;
  SumJoint(mixture.rank, mixture.ramp, points);
  for (size_t i = 0; i < points.size(); ++i) {
    SumJoint(mixture.rank, mixture.ramp, {&alone[i], 1});
    EXPECT_EQ(points[i].sum.Total(), alone[i].sum.Total()) << i;
    EXPECT_GT(points[i].sum.Total(), 0.0) << i;
  }
}

TEST(BoundBlocks, HoldWhatIsThere) {
  for (const size_t size : kSizes) {
    SCOPED_TRACE(size);
    const Mixture mixture(size);
    ASSERT_EQ(mixture.bounds.size(), NumBlocks(size));
    for (size_t block = 0; block < mixture.bounds.size(); ++block) {
      const double* const first = mixture.centre.data() + block * kKernelBlock;
      const size_t count = std::min(kKernelBlock, size - block * kKernelBlock);
      EXPECT_EQ(mixture.bounds[block].low, first[0]);
      EXPECT_EQ(mixture.bounds[block].high, first[count - 1]);
      const double* const inverse = mixture.inverse.data() + block * kKernelBlock;
      EXPECT_EQ(mixture.bounds[block].inverse, *std::min_element(inverse, inverse + count));
    }
  }
}

TEST(FitBandwidths, AreTheLargerGaps) {
  for (const size_t size : {2, 3, 8, 9, 40, 100}) {
    SCOPED_TRACE(size);
    const Mixture mixture(size);
    PaddedColumn<double> fitted;
    fitted.Resize(size);
    std::vector<double> widest(NumBlocks(size));
    const double least = 0.5 / static_cast<double>(size);
    FitBandwidths(mixture.centre, least, fitted, widest);
    std::vector<double> expected(widest.size(), 0.0);
    for (size_t i = 0; i < size; ++i) {
      const double left = i > 0 ? mixture.centre[i] - mixture.centre[i - 1] : 0.0;
      const double right = i + 1 < size ? mixture.centre[i + 1] - mixture.centre[i] : 0.0;
      const double bandwidth = std::max({left, right, least});
      EXPECT_EQ(fitted[i], bandwidth) << i;
      expected[i / kKernelBlock] = std::max(expected[i / kKernelBlock], bandwidth);
    }
    EXPECT_EQ(widest, expected);
  }
}

TEST(SumWeights, IsTheSumOfAll) {
  for (const size_t size : kSizes) {
    const Mixture mixture(size);
    double expected = 0.0;
    for (size_t i = 0; i < size; ++i) expected += mixture.ramp.Weight(mixture.rank[i]);
    EXPECT_NEAR(SumWeights(mixture.rank, mixture.ramp), expected, 1e-12 * (1.0 + expected));
  }
}

TEST(ShiftFrom, ShiftsWhatIsThereAndNoMore) {
  for (const size_t size : kSizes) {
    Mixture mixture(size);
    const double from = static_cast<double>(size / 2);
    ShiftFrom(from, 1.0, mixture.rank);
    for (size_t i = 0; i < size + kKernelBlock; ++i) {
      const double before = i < size ? static_cast<double>(size - 1 - i) : 0.0;
      EXPECT_EQ(mixture.rank[i], before + (i < size && before >= from ? 1.0 : 0.0));
    }
  }
}

TEST(GridKernelBlock, AgreesWithOneAtATime) {
  const Mixture mixture(kKernelBlock - 5);
  GridKernelBlock block{.size = mixture.size};
  std::copy_n(mixture.centre.data(), block.size, block.centre);
  std::copy_n(mixture.inverse.data(), block.size, block.inverse);
  std::copy_n(mixture.scale.data(), block.size, block.scale);
  const std::pair<double, double> cells[] = {{0.2, 0.3},   {0.0, 1e-9}, {0.5, 0.50001},
                                             {0.3, 0.301}, {0.6, 0.61}, {0.0, 1.0}};
  for (const auto& [low, high] : cells) {
    block.FindMasses(low, high);
    for (size_t i = 0; i < block.size; ++i) {
      const double expected =
          mixture.scale[i] * NormalMass((low - mixture.centre[i]) * mixture.inverse[i],
                                        (high - mixture.centre[i]) * mixture.inverse[i]);
      EXPECT_NEAR(block.masses[i], expected, 1e-9 * expected);
      if (expected > 0.0) {
        EXPECT_NEAR(block.logs[i], std::log(expected), 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace hpo::sampler
