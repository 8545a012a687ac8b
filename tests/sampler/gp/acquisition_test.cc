#include "sampler/gp/acquisition.h"

#include <algorithm>
#include <cmath>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "sampler/gp/acquisition_search.h"
#include "sampler/space/model_view.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

// Two numbers, a choice and a grid, observed at random places.
double ScoreOf(const Acquisition& acquisition, const Codes& codes) {
  return acquisition.Scores(std::span(&codes, 1)).front();
}

class AcquisitionTest : public testing::Test {
 protected:
  AcquisitionTest() {
    space_.parameters = {
        MakeParameter("x", FloatDomain{}), MakeParameter("y", FloatDomain{}),
        MakeParameter("c", CategoricalDomain{{std::string("a"), std::string("b")}}),
        MakeParameter("n", IntDomain{.low = 0, .high = 40})};
    coded_.emplace(space_);
    inputs_.emplace(*coded_, ModelView::kQuality);
    PointTable points(inputs_->num_axes());
    std::vector<double> losses, labels;
    Rng rng(8, 8);
    for (int i = 0; i < 40; ++i) {
      const Codes codes = Draw(rng);
      points.Append(inputs_->Point(codes));
      losses.push_back(LossAt(codes));
      labels.push_back(codes[1] > 0.6 ? 1.0 : -1.0);
      observed_.push_back(codes);
    }
    const KernelParameters kernel{.weights = {2.0, 2.0, 1.0, 2.0}, .scale = 1.0, .noise = 1e-4};
    quality_.emplace(kernel, inputs_->num_axes());
    memory_.emplace(kernel, inputs_->num_axes());
    quality_->SetPoints(points);
    quality_->SetTargets(losses);
    memory_->SetPoints(points);
    memory_->SetTargets(labels);
  }

  Codes Draw(Rng& rng) const {
    Codes codes(4, std::nan(""));
    EXPECT_TRUE(coded_->Complete(codes, rng));
    return codes;
  }

  // Best at x = 0.3, y = 0.8, "b", 25.
  static double LossAt(const Codes& codes) {
    const double n = codes[3] / 40.0 - 0.625;
    return std::pow(codes[0] - 0.3, 2) + std::pow(codes[1] - 0.8, 2) + n * n +
           (codes[2] == 1.0 ? 0.0 : 0.3) - 0.5;
  }

  Acquisition Both() const {
    return Acquisition({&*inputs_, &*quality_}, -0.45, {Surrogate{&*inputs_, &*memory_}});
  }
  Acquisition QualityAlone() const { return Acquisition({&*inputs_, &*quality_}, -0.45, {}); }

  std::optional<ScoredCandidate> Maximize(const Acquisition& acquisition,
                                          memory::BatchFeasibility feasibility,
                                          const std::vector<Codes>& tried = {},
                                          const SearchBox* box = nullptr) const {
    const AskContext context{TrialNumber{0}, space_, GiB(16), std::move(feasibility)};
    Rng rng(1, 1);
    return MaximizeAcquisition(context, *coded_, acquisition, {observed_[0]}, tried, rng, box);
  }

  SearchSpace space_;
  std::optional<CodedSpace> coded_;
  std::optional<InputSpace> inputs_;
  std::optional<Posterior> quality_, memory_;
  std::vector<Codes> observed_;
};

TEST_F(AcquisitionTest, SlopesAreDerivatives) {
  const Acquisition acquisition = Both();
  const std::vector<size_t> parameters = {0, 1};
  constexpr double kStep = 1e-6;
  Rng rng(2, 2);
  for (int i = 0; i < 30; ++i) {
    const Codes codes = Draw(rng);
    std::vector<double> slopes(2);
    EXPECT_NEAR(acquisition.Score(codes, parameters, slopes), ScoreOf(acquisition, codes), 1e-9);
    for (const size_t parameter : parameters) {
      Codes left = codes;
      Codes right = codes;
      left[parameter] -= kStep;
      right[parameter] += kStep;
      const double expected =
          (ScoreOf(acquisition, right) - ScoreOf(acquisition, left)) / (2.0 * kStep);
      EXPECT_NEAR(slopes[parameter], expected, 1e-4 * std::max(std::abs(expected), 1.0));
    }
  }
}

TEST_F(AcquisitionTest, ATrendMovesTheMeanAndItsSlopes) {
  const Trend trend{*memory_, 0.3, {}};
  const Surrogate with{&*inputs_, &*quality_, &trend};
  const std::vector<double> point = inputs_->Point({0.4, 0.5, 1.0, 20.0});
  PredictionSlopes plain, moved;
  const Prediction before = quality_->Predict(point, &plain);
  const Prediction after = with.Predict(point, &moved);
  std::vector<double> slopes;
  EXPECT_EQ(after.mean, before.mean + trend.At(point, &slopes));
  EXPECT_EQ(after.deviation, before.deviation);
  for (size_t axis = 0; axis < slopes.size(); ++axis) {
    EXPECT_EQ(moved.mean[axis], plain.mean[axis] + slopes[axis]);
  }
  EXPECT_EQ(moved.deviation, plain.deviation);
}

TEST_F(AcquisitionTest, ALowerBoundLiesItsDeviationsBelowTheMean) {
  const Acquisition lower = Acquisition::OfLowerBound({&*inputs_, &*quality_}, 2.0);
  const Codes codes = {0.4, 0.5, 1.0, 20.0};
  const Prediction at = quality_->Predict(inputs_->Point(codes), nullptr);
  EXPECT_NEAR(ScoreOf(lower, codes), 2.0 * at.deviation - at.mean, 1e-9);
  std::vector<double> slopes(1);
  const std::vector<size_t> parameters = {0};
  lower.Score(codes, parameters, slopes);
  constexpr double kStep = 1e-6;
  const double expected = (ScoreOf(lower, {0.4 + kStep, 0.5, 1.0, 20.0}) -
                           ScoreOf(lower, {0.4 - kStep, 0.5, 1.0, 20.0})) /
                          (2.0 * kStep);
  EXPECT_NEAR(slopes[0], expected, 1e-5);
}

TEST_F(AcquisitionTest, MemoryLowersWhatWillNotFit) {
  const Codes fits = {0.3, 0.2, 1.0, 25.0};
  const Codes too_big = {0.3, 0.9, 1.0, 25.0};
  const double cost_of_fitting = ScoreOf(QualityAlone(), fits) - ScoreOf(Both(), fits);
  const double cost_of_too_big = ScoreOf(QualityAlone(), too_big) - ScoreOf(Both(), too_big);
  EXPECT_NEAR(cost_of_fitting, 0.0, 0.01);
  EXPECT_GT(cost_of_too_big, cost_of_fitting + 1.0);
}

TEST_F(AcquisitionTest, TheSearchFindsTheMaximumOfADenseGrid) {
  const Acquisition acquisition = QualityAlone();
  const auto found = Maximize(acquisition, nullptr);
  ASSERT_TRUE(found.has_value());
  double best = -1e300;
  for (double x = 0.0; x <= 1.0; x += 0.05) {
    for (double y = 0.0; y <= 1.0; y += 0.05) {
      for (double n = 0.0; n <= 40.0; n += 1.0) {
        for (const double c : {0.0, 1.0}) best = std::max(best, ScoreOf(acquisition, {x, y, c, n}));
      }
    }
  }
  EXPECT_GE(found->score, best);
  EXPECT_NEAR(ScoreOf(acquisition, *coded_->Encode(found->candidate.params)), found->score, 1e-9);
}

TEST_F(AcquisitionTest, TheSearchStaysInItsBox) {
  const SearchBox box{{0.8, 0.1, 0.0, 10.0}, 0.2};
  const auto found = Maximize(QualityAlone(), nullptr, {}, &box);
  ASSERT_TRUE(found.has_value());
  const Codes codes = *coded_->Encode(found->candidate.params);
  EXPECT_LE(std::abs(codes[0] - 0.8), 0.1 + 1e-9);
  EXPECT_LE(std::abs(codes[1] - 0.1), 0.1 + 1e-9);
  EXPECT_EQ(codes[2], 1.0) << "choices are free";
  EXPECT_LE(std::abs(codes[3] - 10.0), 4.0) << "of 41 steps";
}

TEST_F(AcquisitionTest, ABoxOnACoarseGridReachesTheNextStep) {
  SearchSpace grid;
  grid.parameters = {MakeParameter("n", IntDomain{.low = 0, .high = 4})};
  const CodedSpace coded(grid);
  const InputSpace inputs(coded, ModelView::kQuality);
  Posterior posterior({.weights = {1.0}, .scale = 1.0, .noise = 1e-4}, inputs.num_axes());
  PointTable points(inputs.num_axes());
  points.Append(inputs.Point({2.0}));
  posterior.SetPoints(points);
  posterior.SetTargets(std::vector<double>{-1.0});
  const Acquisition acquisition({&inputs, &posterior}, -1.0, {});
  const SearchBox box{{2.0}, 0.01};
  std::vector<Codes> tried = {{2.0}};
  const auto find = [&] {
    const AskContext context{TrialNumber{0}, grid, GiB(16), nullptr};
    Rng rng(1, 1);
    return *coded.Encode(MaximizeAcquisition(context, coded, acquisition, {{2.0}}, tried, rng, &box)
                             ->candidate.params);
  };
  for (int i = 0; i < 2; ++i) {
    tried.push_back(find());
    EXPECT_EQ(std::abs(tried.back()[0] - 2.0), 1.0);
  }
  EXPECT_EQ(std::abs(find()[0] - 2.0), 2.0) << "nothing new is left in the box";
}

TEST_F(AcquisitionTest, TheSearchStaysWhereConfigurationsFit) {
  const memory::BatchFeasibility feasibility = [](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      fits.push_back(
          {.fits = *FindDouble(params, "y") + *FindDouble(params, "x") < 0.5, .needed = GiB(1)});
    }
    return fits;
  };
  const auto found = Maximize(QualityAlone(), feasibility);
  ASSERT_TRUE(found.has_value());
  const ParamMap& params = found->candidate.params;
  EXPECT_LT(*FindDouble(params, "x") + *FindDouble(params, "y"), 0.5);
  EXPECT_TRUE(found->candidate.fit.fits);
}

TEST_F(AcquisitionTest, EveryBarrierCounts) {
  const Surrogate labels{&*inputs_, &*memory_};
  const Acquisition twice({&*inputs_, &*quality_}, -0.45, {labels, labels});
  Rng rng(3, 3);
  for (int i = 0; i < 20; ++i) {
    const Codes codes = Draw(rng);
    EXPECT_LE(ScoreOf(twice, codes), ScoreOf(Both(), codes));
  }
  const Codes too_big = {0.3, 0.9, 1.0, 25.0};
  EXPECT_LT(ScoreOf(twice, too_big), ScoreOf(Both(), too_big) - 1.0);
}

TEST_F(AcquisitionTest, WhatWasTriedIsNotFoundAgain) {
  SearchSpace grid;
  grid.parameters = {space_.parameters[2], MakeParameter("n", IntDomain{.low = 0, .high = 2})};
  const CodedSpace coded(grid);
  const InputSpace inputs(coded, ModelView::kQuality);
  Posterior posterior({.weights = {1.0, 2.0}, .scale = 1.0, .noise = 1e-4}, inputs.num_axes());
  PointTable points(inputs.num_axes());
  points.Append(inputs.Point({0.0, 0.0}));
  posterior.SetPoints(points);
  posterior.SetTargets(std::vector<double>{-1.0});
  const Acquisition acquisition({&inputs, &posterior}, -1.0, {});
  std::vector<Codes> tried;
  Rng rng(1, 1);
  for (int i = 0; i < 6; ++i) {
    const AskContext context{TrialNumber{i}, grid, GiB(16), nullptr};
    const auto found = MaximizeAcquisition(context, coded, acquisition, {}, tried, rng);
    ASSERT_TRUE(found.has_value()) << i;
    const Codes codes = *coded.Encode(found->candidate.params);
    EXPECT_EQ(std::count(tried.begin(), tried.end(), codes), 0);
    tried.push_back(codes);
  }
  const AskContext context{TrialNumber{6}, grid, GiB(16), nullptr};
  EXPECT_FALSE(MaximizeAcquisition(context, coded, acquisition, {}, tried, rng).has_value());
}

TEST_F(AcquisitionTest, NothingIsFoundWhereNothingFits) {
  EXPECT_FALSE(Maximize(QualityAlone(), [](std::span<const ParamMap> candidates) {
                 return std::vector<memory::Fit>(candidates.size(),
                                                 memory::Fit{.fits = false, .needed = GiB(99)});
               }).has_value());
}

}  // namespace
}  // namespace hpo::sampler
