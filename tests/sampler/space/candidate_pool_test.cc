#include "sampler/space/candidate_pool.h"

#include "gtest/gtest.h"
#include "sampler/space/cheapest_configuration.h"
#include "sampler/space/random_configuration.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

SearchSpace TwoIntegers() {
  SearchSpace space;
  space.parameters = {MakeParameter("a", IntDomain{.low = 1, .high = 100}),
                      MakeParameter("b", IntDomain{.low = 1, .high = 100})};
  return space;
}

// Needs a + b GiB.
memory::BatchFeasibility SumFits(int64_t limit) {
  return [limit](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      const int64_t sum = *FindInt(params, "a") + *FindInt(params, "b");
      fits.push_back({.fits = sum <= limit, .needed = GiB(sum)});
    }
    return fits;
  };
}

ParamMap Pair(int64_t a, int64_t b) { return {{"a", a}, {"b", b}}; }

TEST(CandidatePool, KeepsWhatFitsAndTheNearestMiss) {
  const AskContext context{TrialNumber{0}, TwoIntegers(), GiB(10), SumFits(10)};
  CandidatePool pool(context);
  pool.Add({Pair(9, 9), Pair(1, 2), Pair(6, 6), Pair(7, 5)});
  pool.Add({Pair(2, 2)});
  ASSERT_EQ(pool.fitting().size(), 2u);
  EXPECT_EQ(pool.fitting()[0].params, Pair(1, 2));
  EXPECT_EQ(pool.fitting()[1].fit.needed, GiB(4));
  ASSERT_TRUE(pool.nearest_miss().has_value());
  EXPECT_EQ(pool.nearest_miss()->params, Pair(6, 6));
}

TEST(CandidatePool, WithoutAnEstimateEverythingFits) {
  const AskContext context{TrialNumber{0}, TwoIntegers(), GiB(1), nullptr};
  CandidatePool pool(context);
  pool.Add({Pair(100, 100)});
  EXPECT_EQ(pool.fitting().size(), 1u);
  EXPECT_FALSE(pool.nearest_miss().has_value());
}

TEST(DrawFitting, KeepsThePresetWhereItFits) {
  const AskContext context{TrialNumber{0}, TwoIntegers(), GiB(40), SumFits(40)};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed, 0);
    const auto drawn = DrawFitting(context, {{"a", int64_t{30}}}, rng);
    ASSERT_TRUE(drawn.ok());
    EXPECT_EQ(*FindInt(drawn->params, "a"), 30);
    EXPECT_LE(drawn->fit.needed, GiB(40));
  }
  Rng rng(1, 0);
  const auto drawn = DrawFitting(context, {{"a", int64_t{90}}}, rng);
  ASSERT_TRUE(drawn.ok());
  EXPECT_LT(*FindInt(drawn->params, "a"), 40);
}

TEST(DrawConfiguration, LeavesOutWhatIsInactiveOrUnknown) {
  SearchSpace space = TwoIntegers();
  space.parameters[1].when = {{"a", {int64_t{1}}}};
  Rng rng(1, 1);
  const auto drawn =
      DrawConfiguration(space, {{"a", int64_t{2}}, {"b", int64_t{5}}, {"c", true}}, rng);
  ASSERT_TRUE(drawn.ok());
  EXPECT_EQ(*drawn, (ParamMap{{"a", int64_t{2}}}));
}

TEST(ProbeValues, AllOfFewAndTheEndsOfMany) {
  EXPECT_EQ(ProbeValues(IntDomain{.low = 2, .high = 10, .step = 4}),
            (std::vector<ParamValue>{int64_t{2}, int64_t{6}, int64_t{10}}));
  const auto many = ProbeValues(FloatDomain{.low = 1.0, .high = 4.0});
  EXPECT_EQ(many.size(), 16u);
  EXPECT_EQ(many.front(), ParamValue(1.0));
  EXPECT_EQ(many.back(), ParamValue(4.0));
}

TEST(WithValue, RepairsChildrenAndNarrowedParameters) {
  SearchSpace space;
  space.parameters = {
      MakeParameter("model.name", CategoricalDomain{{std::string("base"), std::string("large")}}),
      MakeParameter("length", IntDomain{.low = 128, .high = 512, .step = 32}),
      MakeParameter("extra", IntDomain{.low = 7, .high = 9})};
  space.parameters[2].when = {{"model.name", {std::string("large")}}};
  space.narrowings = {{{{"model.name", {std::string("large")}}},
                       "length",
                       IntDomain{.low = 128, .high = 384, .step = 32}}};
  const ParamMap base = {{"model.name", std::string("base")}, {"length", int64_t{512}}};
  const auto large = WithValue(space, base, "model.name", std::string("large"));
  ASSERT_TRUE(large.has_value());
  EXPECT_EQ(*large, (ParamMap{{"model.name", std::string("large")},
                              {"length", int64_t{128}},
                              {"extra", int64_t{7}}}));
  EXPECT_FALSE(WithValue(space, *large, "length", int64_t{512}).has_value());
  EXPECT_FALSE(WithValue(space, base, "extra", int64_t{8}).has_value());
}

TEST(FindCheapest, StopsAtTheFirstFitOrAtTheLeastNeed) {
  const AskContext context{TrialNumber{0}, TwoIntegers(), GiB(120), SumFits(120)};
  const Candidate start{Pair(100, 100), {.fits = false, .needed = GiB(200)}};
  const Candidate first = FindCheapest(context, start, CheapestGoal::kFirstThatFits);
  EXPECT_EQ(first.params, Pair(1, 100));
  EXPECT_TRUE(first.fit.fits);
  EXPECT_EQ(FindCheapest(context, start, CheapestGoal::kLeastNeed).params, Pair(1, 1));
}

}  // namespace
}  // namespace hpo::sampler
