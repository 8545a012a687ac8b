#include "memory/learned/learned_need.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/memory/simulated_law.h"

namespace hpo::memory {
namespace {

NeedObservation Used(const ParamMap& params, Bytes bytes) { return {params, bytes, false}; }
NeedObservation Oom(const ParamMap& params, Bytes limit) { return {params, limit, true}; }

TEST(LearnedNeed, KnowsNothingAtFirst) {
  EXPECT_EQ(LearnedNeed().Decide({}, Bytes{1}), LearnedFit{});
  EXPECT_EQ(LearnedNeed(SizesSpace(), {}, {}).Decide(Sizes(64, 512, 1024, 12), Bytes{1}),
            LearnedFit{});
}

TEST(LearnedNeed, BeforeTheFirstFitAnOomRulesOutWhatIsNoSmaller) {
  const std::vector<NeedObservation> seen = {Oom(Sizes(16, 256, 256, 4), GiB(4))};
  const LearnedNeed need(SizesSpace(), {}, seen);
  struct Case {
    ParamMap params;
    Bytes usable;
    bool fits;
  };
  const Case cases[] = {{Sizes(16, 256, 256, 4), GiB(4), false},
                        {Sizes(32, 256, 512, 4), GiB(4), false},
                        {Sizes(32, 256, 512, 4), GiB(3), false},
                        {Sizes(32, 256, 512, 4), GiB(5), true},  // a larger card
                        {Sizes(64, 192, 1024, 12), GiB(4), true},
                        {Sizes(8, 256, 256, 4), GiB(4), true}};
  for (const Case& c : cases) {
    const LearnedFit fit = need.Decide(c.params, c.usable);
    EXPECT_EQ(fit.fits, c.fits) << FormatParams(c.params);
    EXPECT_EQ(fit.needed, c.fits ? Bytes{} : GiB(4) + Bytes{1});
  }
}

TEST(LearnedNeed, WhatIsNoLargerThanOneThatRanFits) {
  const ParamMap ran = Sizes(16, 256, 256, 4);
  const LearnedNeed need(SizesSpace(), {}, std::vector{Used(ran, GiB(2))});
  EXPECT_EQ(need.Decide(Sizes(8, 256, 256, 2), GiB(2)),
            (LearnedFit{.fits = true, .expected = {}, .needed = GiB(2)}));
  EXPECT_EQ(need.Decide(Sizes(32, 256, 256, 2), GiB(2)), LearnedFit{}) << "nothing is known";
}

// Where both hold by noise, the OOM counts.
TEST(LearnedNeed, AnOomBeatsARunOfTheSameSize) {
  const ParamMap both = Sizes(16, 256, 256, 4);
  const std::vector<NeedObservation> seen = {Used(both, GiB(2)), Oom(both, GiB(2))};
  EXPECT_FALSE(LearnedNeed(SizesSpace(), {}, seen).Decide(both, GiB(2)).fits);
}

// Observations of `law` at random configurations.
std::vector<NeedObservation> Observe(const std::function<double(const ParamMap&)>& law, int n,
                                     uint64_t seed, const SearchSpace& space) {
  Rng rng(seed, 17);
  std::vector<NeedObservation> seen;
  for (int i = 0; i < n; ++i) {
    const ParamMap params = DrawSizes(space, rng);
    seen.push_back(Used(params, Bytes{static_cast<int64_t>(law(params))}));
  }
  return seen;
}

TEST(LearnedNeed, PredictsALawOfProductsFromFewRuns) {
  const auto law = [](const ParamMap& params) {
    const double b = *FindDouble(params, "batch");
    const double s = *FindDouble(params, "length");
    const double h = *FindDouble(params, "hidden");
    const double l = *FindDouble(params, "layers");
    return 5e8 + 10.0 * b * s * h * l + 16.0 * h * h * l;
  };
  const SearchSpace space = SizesSpace();
  const LearnedNeed need(space, {}, Observe(law, 40, 1, space));
  for (const auto& [params, bytes, censored, unmeasured] : Observe(law, 100, 2, space)) {
    const LearnedFit fit = need.Decide(params, GiB(1000));
    EXPECT_NEAR(static_cast<double>(fit.expected.count), static_cast<double>(bytes.count),
                0.01 * static_cast<double>(bytes.count));
    EXPECT_GE(fit.needed, bytes);
    EXPECT_LE(static_cast<double>(fit.needed.count), 1.05 * static_cast<double>(bytes.count));
  }
}

// Nobody says which way a parameter goes: accumulation steps split the batch.
TEST(LearnedNeed, LearnsThatASizeSplitsTheWork) {
  SearchSpace space = SizesSpace();
  space.parameters.push_back(WholeNumber("accumulation", 1, 8));
  const auto law = [](const ParamMap& params) {
    return 1e8 + 4e4 * *FindDouble(params, "batch") * *FindDouble(params, "length") /
                     *FindDouble(params, "accumulation");
  };
  const LearnedNeed need(space, {}, Observe(law, 60, 3, space));
  ParamMap params = Sizes(64, 512, 128, 1);
  params["accumulation"] = int64_t{8};
  const Bytes split{static_cast<int64_t>(law(params) * 1.1)};
  EXPECT_TRUE(need.Decide(params, split).fits);
  params["accumulation"] = int64_t{1};
  EXPECT_FALSE(need.Decide(params, split).fits);
}

TEST(LearnedNeed, LearnsAnExponentOfTwo) {
  SearchSpace space;
  space.parameters = {WholeNumber("features.log2", 12, 20), WholeNumber("batch", 1, 64)};
  const auto law = [](const ParamMap& params) {
    return 2e7 + 400.0 * std::exp2(*FindDouble(params, "features.log2")) +
           1e5 * *FindDouble(params, "batch");
  };
  const LearnedNeed need(space, {}, Observe(law, 40, 4, space));
  for (const auto& [params, bytes, censored, unmeasured] : Observe(law, 50, 5, space)) {
    EXPECT_NEAR(static_cast<double>(need.Decide(params, GiB(9)).expected.count),
                static_cast<double>(bytes.count), 0.01 * static_cast<double>(bytes.count));
  }
}

TEST(LearnedNeed, ChoicesThatAreNoNumbersHaveTheirOwnTerms) {
  SearchSpace space;
  space.parameters = {WholeNumber("batch", 1, 64),
                      Choices("model", {std::string("small"), std::string("large")})};
  const auto law = [](const ParamMap& params) {
    const bool large = *FindString(params, "model") == "large";
    return (large ? 3e9 : 5e8) + (large ? 6e7 : 1e7) * *FindDouble(params, "batch");
  };
  const LearnedNeed need(space, {}, Observe(law, 30, 6, space));
  for (const auto& [params, bytes, censored, unmeasured] : Observe(law, 50, 7, space)) {
    EXPECT_NEAR(static_cast<double>(need.Decide(params, GiB(90)).expected.count),
                static_cast<double>(bytes.count), 0.01 * static_cast<double>(bytes.count));
  }
  // A run of one choice says nothing of another.
  const std::vector<NeedObservation> one = {
      Used({{"batch", int64_t{8}}, {"model", std::string("small")}}, GiB(1))};
  EXPECT_EQ(LearnedNeed(space, {}, one)
                .Decide({{"batch", int64_t{8}}, {"model", std::string("large")}}, GiB(1)),
            LearnedFit{});
}

TEST(LearnedNeed, RealNumbersCountWhereTheyAreDeclared) {
  SearchSpace space;
  space.parameters = {Parameter{.name = "width",
                                .domain = FloatDomain{.low = 0.5, .high = 4.0},
                                .when = {},
                                .default_value = {}}};
  const auto law = [](const ParamMap& params) {
    return 1e8 + 1e9 * *FindDouble(params, "width") * *FindDouble(params, "width");
  };
  const auto seen = Observe(law, 30, 8, space);
  const Bytes middle{static_cast<int64_t>(2e9)};
  const ParamMap large = {{"width", 4.0}};
  EXPECT_FALSE(LearnedNeed(space, {"width"}, seen).Decide(large, middle).fits);
  // Else all configurations look alike.
  const LearnedNeed undeclared(space, {}, seen);
  EXPECT_EQ(undeclared.Decide(large, middle), undeclared.Decide({{"width", 0.5}}, middle));
}

TEST(LearnedNeed, AnOomAboveTheFitRaisesIt) {
  const auto law = [](const ParamMap& params) { return 1e8 * *FindDouble(params, "batch"); };
  const SearchSpace space = SizesSpace();
  std::vector<NeedObservation> seen = Observe(law, 20, 9, space);
  const ParamMap odd = Sizes(8, 512, 1024, 12);
  const Bytes before = LearnedNeed(space, {}, seen).Decide(odd, GiB(100)).expected;
  seen.push_back(Oom(odd, before * 2));
  EXPECT_GT(LearnedNeed(space, {}, seen).Decide(odd, GiB(100)).expected, before);
  // One below the fit says nothing new.
  seen.back() = Oom(odd, Bytes{before.count / 2});
  EXPECT_EQ(LearnedNeed(space, {}, seen).Decide(odd, GiB(100)).expected, before);
}

// One that others caused, on a card that they shared.
TEST(LearnedNeed, AnOomWhereLargerOnesRanWithMuchToSpareIsLeftOut) {
  const auto law = [](const ParamMap& params) {
    return 1e8 + 1e3 * *FindDouble(params, "batch") * *FindDouble(params, "length");
  };
  const SearchSpace space = SizesSpace();
  std::vector<NeedObservation> seen = Observe(law, 20, 11, space);
  const LearnedNeed before(space, {}, seen);
  seen.push_back(Oom(Sizes(2, 64, 128, 1), GiB(4)));
  const LearnedNeed after(space, {}, seen);
  for (const ParamMap& params : {Sizes(2, 64, 128, 1), Sizes(64, 512, 1024, 12)}) {
    EXPECT_TRUE(after.Decide(params, GiB(4)).fits);
    EXPECT_EQ(after.Decide(params, GiB(4)), before.Decide(params, GiB(4)));
  }
}

TEST(LearnedNeed, WhereNoParameterCountsAnOomSaysNothing) {
  SearchSpace rates;
  rates.parameters = {Parameter{.name = "lr",
                                .domain = FloatDomain{.low = 1e-5, .high = 1e-2, .log = true},
                                .when = {},
                                .default_value = {}},
                      Choices("optimizer", {std::string("adam")}),
                      Parameter{.name = "seed",
                                .domain = IntDomain{.low = 0, .high = 9},
                                .when = {},
                                .modelled = false,
                                .default_value = {}}};
  const ParamMap params = {{"lr", 1e-3}, {"optimizer", std::string("adam")}, {"seed", int64_t{3}}};
  for (const int num_uses : {0, 1, 6}) {
    std::vector<NeedObservation> seen(static_cast<size_t>(num_uses), Used(params, MiB(20)));
    const LearnedFit before = LearnedNeed(rates, {}, seen).Decide(params, GiB(1));
    for (int ooms = 0; ooms < 5; ++ooms) {
      EXPECT_FALSE(LearnedNeed(rates, {}, seen).Explains(params, GiB(1)));
      seen.push_back(Oom(params, GiB(1)));
      EXPECT_EQ(LearnedNeed(rates, {}, seen).Decide(params, GiB(1)), before) << num_uses;
    }
    EXPECT_TRUE(before.fits);
  }
  // Declared, a rate is as good as a size.
  const std::vector<NeedObservation> one = {Oom(params, GiB(1))};
  EXPECT_FALSE(LearnedNeed(rates, {"lr"}, one).Decide(params, GiB(1)).fits);
  EXPECT_TRUE(LearnedNeed(rates, {"lr"}, one).Explains(params, GiB(1)));
}

TEST(LearnedNeed, OneLargerRunContradictsAnOom) {
  const ParamMap small = Sizes(2, 64, 128, 1);
  const ParamMap large = Sizes(16, 256, 256, 4);
  const NeedObservation oom = Oom(small, GiB(4));
  for (const ParamMap& ran : {small, large}) {
    const std::vector<NeedObservation> seen = {Used(ran, GiB(2)), oom};
    const LearnedNeed need(SizesSpace(), {}, seen);
    EXPECT_TRUE(need.Decide(small, GiB(4)).fits);
    EXPECT_TRUE(need.Decide(Sizes(64, 512, 1024, 12), GiB(4)).fits) << "nothing is known";
    EXPECT_FALSE(need.Explains(small, GiB(4)));
    EXPECT_TRUE(need.Explains(Sizes(64, 512, 1024, 12), GiB(4)));
  }
  // By a hair is no contradiction; but where nobody measured, any run within the limit is.
  NeedObservation within{.params = large, .bytes = GiB(4), .unmeasured = true};
  const LearnedNeed close(SizesSpace(), {}, std::vector{Used(large, GiB(4)), oom});
  EXPECT_FALSE(close.Decide(small, GiB(4)).fits);
  const LearnedNeed unmeasured(SizesSpace(), {}, std::vector{within, oom});
  EXPECT_EQ(unmeasured.Decide(small, GiB(4)), LearnedFit{});
  within.bytes = GiB(5);
  EXPECT_FALSE(LearnedNeed(SizesSpace(), {}, std::vector{within, oom}).Decide(small, GiB(4)).fits);
}

TEST(LearnedNeed, AFewOomsLeaveSomethingOfTheSpace) {
  SearchSpace space;
  space.parameters = {WholeNumber("batch", 8, 64, 8),
                      Choices("optimizer", {std::string("adam"), std::string("sgd")})};
  const auto point = [](int64_t batch, const char* optimizer) -> ParamMap {
    return {{"batch", batch}, {"optimizer", std::string(optimizer)}};
  };
  std::vector<NeedObservation> seen;
  for (int round = 1; round <= 3; ++round) {
    seen.push_back(Oom(point(8, "adam"), GiB(1)));
    seen.push_back(Oom(point(8, "sgd"), GiB(1)));
    const LearnedNeed need(space, {}, seen);
    EXPECT_FALSE(need.Decide(point(8, "adam"), GiB(1)).fits);
    ASSERT_TRUE(need.LeavesNothing(GiB(1)));
    EXPECT_EQ(need.AsLastResort().Decide(point(8, "adam"), GiB(1)).fits, round < 3) << round;
    EXPECT_EQ(need.AsLastResort().Decide(point(64, "sgd"), GiB(1)).fits, round < 3) << round;
  }
  // What ran, if only just, is never given up.
  seen.push_back(Used(point(8, "adam"), GiB(1)));
  const LearnedNeed need(space, {}, seen);
  ASSERT_TRUE(need.LeavesNothing(GiB(1)));
  EXPECT_TRUE(need.AsLastResort().Decide(point(8, "adam"), GiB(1)).fits);
  EXPECT_FALSE(need.AsLastResort().Decide(point(16, "adam"), GiB(1)).fits);
  EXPECT_FALSE(need.LeavesNothing(GiB(2))) << "no OOM was met there: all is open";
}

TEST(LearnedNeed, UnusualConfigurationsAreNoTrouble) {
  const auto law = [](const ParamMap& params) { return 1e8 * *FindDouble(params, "batch"); };
  const SearchSpace space = SizesSpace();
  const LearnedNeed need(space, {}, Observe(law, 30, 10, space));
  EXPECT_TRUE(need.Decide({}, GiB(100)).fits);
  EXPECT_TRUE(need.Decide({{"batch", std::string("many")}}, GiB(100)).fits);
  EXPECT_FALSE(need.Decide({{"batch", int64_t{1} << 60}}, GiB(100)).fits);
  EXPECT_TRUE(need.Decide({{"batch", int64_t{-5}}}, GiB(100)).fits);
  EXPECT_EQ(LearnedNeed(SearchSpace{}, {}, Observe(law, 0, 0, space)).Decide({}, GiB(1)),
            LearnedFit{});
  // More parameters than products of any degree: a constant.
  SearchSpace wide;
  for (int i = 0; i < 40; ++i) {
    std::vector<ParamValue> names;
    for (int j = 0; j < 20; ++j) names.emplace_back(std::string(1, static_cast<char>('a' + j)));
    wide.parameters.push_back(Choices("choice" + std::to_string(i), names));
  }
  const std::vector<NeedObservation> same(6, Used({}, GiB(1)));
  EXPECT_EQ(LearnedNeed(wide, {}, same).Decide({}, GiB(2)).expected, GiB(1));
}

// The goal of the project (figure foreign_oom_share: below 3 % of the trials from 50 on), here
// under laws drawn by seed and a sampler that wants what is large.
TEST(LearnedNeed, AvoidsOomsUnderLawsThatItHasToLearn) {
  struct Case {
    double noise;
    uint64_t seeds;
    double most_ooms;
    double most_refused;
  };
  for (const Case& c : {Case{0.01, 2, 0.01, 0.08}, Case{0.03, 1, 0.02, 0.15}}) {
    double late = 0.0;
    double late_ooms = 0.0;
    double refused = 0.0;
    double studies = 0.0;
    for (int kind = 0; kind < SimulatedLaw::kNumKinds; ++kind) {
      for (uint64_t seed = 0; seed < c.seeds; ++seed) {
        const StudyFigures figures = SimulateStudy(SimulatedLaw(kind, seed, c.noise), seed);
        late += figures.num_late;
        late_ooms += figures.num_late_ooms;
        refused += figures.refused_feasible;
        studies += 1.0;
        EXPECT_LE(figures.num_late_ooms, figures.num_late / 20) << "law " << kind << ", " << seed;
      }
    }
    EXPECT_LT(late_ooms / late, c.most_ooms) << "noise " << c.noise;
    EXPECT_LT(refused / studies, c.most_refused) << "noise " << c.noise;
  }
}

}  // namespace
}  // namespace hpo::memory
