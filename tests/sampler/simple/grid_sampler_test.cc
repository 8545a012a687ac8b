#include "sampler/simple/grid_sampler.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "common/space/search_space_validation.h"
#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

CategoricalDomain Choices(std::vector<std::string> names) {
  CategoricalDomain domain;
  for (std::string& name : names) domain.choices.emplace_back(std::move(name));
  return domain;
}

// An optimizer; momentum for one of them alone; sizes, fewer for the other.
StudySpec Study() {
  StudySpec study;
  study.sampler.type = "grid";
  Parameter momentum =
      MakeParameter("momentum", FloatDomain{.low = 0.0, .high = 0.9, .step = 0.45});
  momentum.when = {{"optimizer", {std::string("sgd")}}};
  study.space.parameters = {MakeParameter("optimizer", Choices({"sgd", "adam"})), momentum,
                            MakeParameter("size", IntDomain{.low = 8, .high = 24, .step = 8})};
  study.space.narrowings = {
      {{{"optimizer", {std::string("adam")}}}, "size", IntDomain{.low = 8, .high = 16, .step = 8}}};
  return study;
}

std::string Text(const ParamMap& params) { return FormatParams(params); }

class GridTest : public testing::Test {
 protected:
  void Tell(const ParamMap& params, TrialState state = TrialState::kCompleted) {
    HistoryTrial trial{.number = TrialNumber{next_}, .params = params, .state = state};
    history_.Apply({next_ + 1, trial});
    sampler_->Observe({++next_, trial});
  }

  absl::StatusOr<Suggestion> Ask(memory::BatchFeasibility feasibility = nullptr) const {
    return sampler_->Suggest({TrialNumber{next_}, study_.space, GiB(8), std::move(feasibility)});
  }

  StudySpec study_ = Study();
  std::unique_ptr<Sampler> sampler_ = MakeSampler(study_);
  History history_;
  int64_t next_ = 0;
};

TEST_F(GridTest, TheFirstParameterTurnsSlowest) {
  std::vector<std::string> order;
  for (auto next = Ask(); next.ok(); next = Ask()) {
    ASSERT_TRUE(ValidateParams(study_.space, next->params).ok());
    EXPECT_EQ(next->sampler, "grid");
    EXPECT_FALSE(GridIsUsedUp(history_, study_.space));
    order.push_back(Text(next->params));
    // Whatever becomes of it, a configuration is had once.
    Tell(next->params, static_cast<TrialState>(order.size() % 5));
  }
  std::vector<std::string> expected;
  for (const double momentum : {0.0, 0.45, 0.9}) {
    for (const int64_t size : {8, 16, 24}) {
      expected.push_back(
          Text({{"optimizer", std::string("sgd")}, {"momentum", momentum}, {"size", size}}));
    }
  }
  for (const int64_t size : {8, 16}) {
    expected.push_back(Text({{"optimizer", std::string("adam")}, {"size", size}}));
  }
  EXPECT_EQ(order, expected);
  EXPECT_TRUE(GridIsUsedUp(history_, study_.space));
  EXPECT_EQ(Ask().status().code(), absl::StatusCode::kOutOfRange) << Ask().status();
}

TEST_F(GridTest, WhatDoesNotFitIsPassedAndSaid) {
  const memory::BatchFeasibility small = [](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      fits.push_back({.fits = *FindInt(params, "size") > 8, .needed = GiB(9)});
    }
    return fits;
  };
  const auto next = Ask(small);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(*FindInt(next->params, "size"), 16);
  EXPECT_EQ(next->sampler, "grid, past 1 that do not fit this worker");
  EXPECT_TRUE(next->fit.fits);
  // A larger card is given what was passed.
  EXPECT_EQ(*FindInt(Ask()->params, "size"), 8);
}

TEST_F(GridTest, WhereNothingLeftFitsTheLeastNeedIsNamed) {
  const auto next = Ask([](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      fits.push_back({.fits = false, .needed = GiB(1 + *FindInt(params, "size"))});
    }
    return fits;
  });
  ASSERT_EQ(next.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(next.status().message().find("least demanding needs 9.00 GiB"), absl::string_view::npos)
      << next.status();
}

// A worker without one of the models is not told that the study is over.
TEST_F(GridTest, AWorkerThatLacksAChoiceDoesTheRest) {
  SearchSpace part = study_.space;
  std::get<CategoricalDomain>(part.parameters[0].domain)
      .choices.erase(std::get<CategoricalDomain>(part.parameters[0].domain).choices.begin());
  for (int i = 0; i < 2; ++i) {
    const auto next = sampler_->Suggest({TrialNumber{next_}, part, GiB(8), nullptr});
    ASSERT_TRUE(next.ok());
    EXPECT_EQ(next->params.at("optimizer"), ParamValue(std::string("adam")));
    Tell(next->params);
  }
  EXPECT_EQ(sampler_->Suggest({TrialNumber{next_}, part, GiB(8), nullptr}).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(GridIsUsedUp(history_, study_.space));
  EXPECT_TRUE(Ask().ok());
}

TEST_F(GridTest, AddedChoicesContinueTheGrid) {
  for (auto next = Ask(); next.ok(); next = Ask()) Tell(next->params);
  std::get<CategoricalDomain>(study_.space.parameters[0].domain)
      .choices.push_back(std::string("lion"));
  const auto next = Ask();
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(next->params.at("optimizer"), ParamValue(std::string("lion")));
}

TEST_F(GridTest, TrialsThatAreNoPartOfTheGridDoNoHarm) {
  Tell({{"size", int64_t{9}}});
  Tell({{"optimizer", std::string("unknown")}, {"size", int64_t{8}}});
  Tell({});
  EXPECT_EQ(Text(Ask()->params),
            Text({{"optimizer", std::string("sgd")}, {"momentum", 0.0}, {"size", int64_t{8}}}));
}

TEST(GridSampler, ParametersNotModelledAreDrawnForEach) {
  StudySpec study;
  study.sampler.type = "grid";
  Parameter seed = MakeParameter("seed", FloatDomain{});
  seed.modelled = false;
  study.space.parameters = {seed, MakeParameter("n", IntDomain{.low = 1, .high = 3})};
  ASSERT_TRUE(ValidateSpace(study.space).ok());
  SimulatedStudy simulated(study, [](const ParamMap&) -> std::optional<double> { return 1.0; });
  std::set<ParamValue> seeds;
  for (int64_t n = 1; n <= 3; ++n) {
    const ParamMap params = simulated.RunOne().params;
    EXPECT_EQ(*FindInt(params, "n"), n);
    seeds.insert(params.at("seed"));
  }
  EXPECT_EQ(seeds.size(), 3u);
}

// 10^12 configurations, of which the walk finds none that fits.
TEST(GridSampler, AHugeGridIsNotWalkedToItsEnd) {
  StudySpec study;
  study.sampler.type = "grid";
  for (int i = 0; i < 12; ++i) {
    study.space.parameters.push_back(
        MakeParameter(absl::StrCat("p", i), IntDomain{.low = 0, .high = 9}));
  }
  SimulatedStudy simulated(study, [](const ParamMap&) -> std::optional<double> { return 1.0; });
  simulated.set_feasibility([](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      fits.push_back(
          {.fits = *FindInt(params, "p0") > 4, .needed = GiB(10 - *FindInt(params, "p0"))});
    }
    return fits;
  });
  std::set<ParamMap> seen;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(simulated.Suggest(i).sampler,
              "grid at random, past 4096 that do not fit this worker");
    const ParamMap params = simulated.RunOne().params;
    EXPECT_GT(*FindInt(params, "p0"), 4);
    seen.insert(params);
  }
  EXPECT_EQ(seen.size(), 5u);
}

TEST(GridSampler, ContradictionsLeaveOutWhatTheyForbid) {
  StudySpec study;
  study.sampler.type = "grid";
  study.space.parameters = {MakeParameter("a", Choices({"x", "y"})),
                            MakeParameter("b", IntDomain{.low = 0, .high = 9})};
  const std::vector<Condition> x = {{"a", {std::string("x")}}};
  study.space.narrowings = {{x, "b", IntDomain{.low = 0, .high = 3}},
                            {x, "b", IntDomain{.low = 5, .high = 9}}};
  SimulatedStudy simulated(study, [](const ParamMap&) -> std::optional<double> { return 1.0; });
  for (int64_t b = 0; b <= 9; ++b) {
    const ParamMap params = simulated.RunOne().params;
    EXPECT_EQ(params.at("a"), ParamValue(std::string("y")));
    EXPECT_EQ(*FindInt(params, "b"), b);
  }
}

}  // namespace
}  // namespace hpo::sampler
