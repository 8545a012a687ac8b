#include "sampler/space/finite_space.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::sampler {
namespace {

using ::testing::HasSubstr;

Parameter Named(const std::string& name, Domain domain) {
  return {.name = name, .domain = std::move(domain)};
}

// Of four configurations.
SearchSpace FourConfigurations() {
  return {.parameters = {Named("a", IntDomain{.low = 20, .high = 21}),
                         Named("b", CategoricalDomain{{std::string("x"), std::string("y")}})}};
}

ParamMap Configuration(int64_t a, const std::string& b) { return {{"a", a}, {"b", b}}; }

// Proposes the same again and again.
class OneConfiguration final : public Sampler {
 public:
  explicit OneConfiguration(ParamMap params) : params_(std::move(params)) {}

  void Observe(const HistoryEvent&) override {}
  absl::StatusOr<Suggestion> Suggest(const AskContext&) const override {
    return Suggestion{.params = params_, .sampler = "random", .score = 1.0};
  }

 private:
  ParamMap params_;
};

class FiniteSpace : public testing::Test {
 protected:
  void Try(ParamMap params, TrialState state = TrialState::kRunning) {
    history_.Apply(
        {++sequence_,
         {.number = TrialNumber{sequence_}, .params = std::move(params), .state = state}});
  }

  absl::StatusOr<Suggestion> Ask(const SearchSpace& space, ParamMap proposed,
                                 memory::BatchFeasibility feasibility = {}) {
    WithoutRepetition sampler(std::make_unique<OneConfiguration>(std::move(proposed)), 7);
    for (const auto& [number, trial] : history_.trials()) sampler.Observe({number.value, trial});
    return sampler.Suggest({.number = TrialNumber{sequence_ + 1},
                            .space = space,
                            .capacity = GiB(1),
                            .feasibility = std::move(feasibility),
                            .repetition = repetition_});
  }

  History history_;
  int64_t sequence_ = 0;
  Repetition repetition_ = Repetition::kNever;
};

TEST_F(FiniteSpace, NothingIsProposedTwiceUntilAllHasBeenTried) {
  const SearchSpace space = FourConfigurations();
  std::set<ParamMap> proposed;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(SpaceIsUsedUp(history_, space));
    const auto suggestion = Ask(space, Configuration(20, "x"));
    ASSERT_TRUE(suggestion.ok()) << suggestion.status();
    EXPECT_EQ(suggestion->score.has_value(), i == 0) << "the first one is the sampler's own";
    EXPECT_TRUE(proposed.insert(suggestion->params).second);
    Try(suggestion->params, i == 1 ? TrialState::kCompleted : TrialState::kRunning);
  }
  EXPECT_TRUE(SpaceIsUsedUp(history_, space));
  const auto none = Ask(space, Configuration(20, "x"));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(FiniteSpace, ARepetitionThatIsAllowedStays) {
  const SearchSpace space = FourConfigurations();
  Try(Configuration(20, "x"));
  repetition_ = Repetition::kAlways;
  const auto again = Ask(space, Configuration(20, "x"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->params, Configuration(20, "x"));
  EXPECT_EQ(again->score, 1.0);
  EXPECT_FALSE(again->all_tried);
  repetition_ = Repetition::kWhereAllTried;
  for (int i = 1; i < 4; ++i) {
    const auto other = Ask(space, Configuration(20, "x"));
    EXPECT_FALSE(other->all_tried);
    Try(other->params);
  }
  EXPECT_TRUE(SpaceIsUsedUp(history_, space));
  EXPECT_TRUE(Ask(space, Configuration(20, "x"))->all_tried);
}

TEST_F(FiniteSpace, WhatFailedIsTriedOnceMoreAfterTheOthers) {
  const SearchSpace space = FourConfigurations();
  Try(Configuration(20, "x"), TrialState::kFailed);
  for (const ParamMap& other :
       {Configuration(20, "y"), Configuration(21, "x"), Configuration(21, "y")}) {
    EXPECT_NE(Ask(space, Configuration(20, "x"))->params, Configuration(20, "x"));
    Try(other, TrialState::kCompleted);
  }
  EXPECT_FALSE(SpaceIsUsedUp(history_, space));
  EXPECT_EQ(Ask(space, Configuration(21, "x"))->params, Configuration(20, "x"));
  Try(Configuration(20, "x"), TrialState::kFailed);
  EXPECT_TRUE(SpaceIsUsedUp(history_, space));
  EXPECT_FALSE(Ask(space, Configuration(21, "x")).ok());
}

TEST_F(FiniteSpace, WhatIsLeftOfALargerOneIsFound) {
  SearchSpace space = FourConfigurations();
  space.parameters[0].domain = IntDomain{.low = 1, .high = 1000};
  for (int64_t a = 1; a <= 1000; ++a) {
    Try(Configuration(a, "x"));
    if (a != 700) Try(Configuration(a, "y"));
  }
  const auto last = Ask(space, Configuration(1, "x"));
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->params, Configuration(700, "y"));
}

TEST_F(FiniteSpace, AContinuousOneIsNeverUsedUp) {
  SearchSpace space = FourConfigurations();
  space.parameters.push_back(Named("c", FloatDomain{.low = 0.0, .high = 1.0}));
  ParamMap params = Configuration(20, "x");
  params["c"] = 0.5;
  Try(params);
  EXPECT_FALSE(SpaceIsUsedUp(history_, space));
  EXPECT_EQ(Ask(space, params)->params, params);
}

TEST_F(FiniteSpace, ABranchWithoutNumbersIsNotRepeatedWhileThereAreOthers) {
  SearchSpace space;
  space.parameters = {Named("kind", CategoricalDomain{{std::string("none"), std::string("some")}}),
                      Named("size", FloatDomain{.low = 0.0, .high = 1.0})};
  space.parameters[1].when = {{"kind", {std::string("some")}}};
  Try({{"kind", std::string("none")}});
  EXPECT_FALSE(SpaceIsUsedUp(history_, space));
  EXPECT_EQ(Ask(space, {{"kind", std::string("none")}})->params.size(), 2u);
}

TEST_F(FiniteSpace, ASeedMakesRepetitionsWorthWhile) {
  SearchSpace space = FourConfigurations();
  space.parameters[0] = Named("seed", IntDomain{.low = 0, .high = 1'000'000});
  space.parameters[0].modelled = false;
  const auto with = [](int64_t seed, const std::string& b) {
    return ParamMap{{"seed", seed}, {"b", b}};
  };
  Try(with(1, "x"));
  EXPECT_EQ(Ask(space, with(2, "x"))->params.at("b"), ParamValue(std::string("y")));
  Try(with(3, "y"));
  EXPECT_FALSE(SpaceIsUsedUp(history_, space));
  EXPECT_EQ(Ask(space, with(4, "x"))->params, with(4, "x"));
}

TEST_F(FiniteSpace, WhatDoesNotFitIsLeftOut) {
  const SearchSpace space = FourConfigurations();
  const auto only_x = [](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      fits.push_back({.fits = params.at("b") == ParamValue(std::string("x")), .needed = GiB(2)});
    }
    return fits;
  };
  Try(Configuration(20, "x"));
  EXPECT_EQ(Ask(space, Configuration(20, "x"), only_x)->params, Configuration(21, "x"));
  Try(Configuration(21, "x"));
  const auto none = Ask(space, Configuration(20, "x"), only_x);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("every configuration that fits this worker has been tried; more memory "
                        "would allow 2 more of the space"));
}

}  // namespace
}  // namespace hpo::sampler
