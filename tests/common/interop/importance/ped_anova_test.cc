// Golden: scripts/reference/importance.py.
#include "common/interop/importance/ped_anova.h"

#include "common/interop/importance/fanova.h"
#include "common/interop/importance/importance.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/interop/importance/golden_study.h"

namespace hpo {
namespace {

TEST(PedAnova, EqualsOptunas) {
  const nlohmann::json golden = ReadGolden("importance.json");
  ASSERT_EQ(golden["studies"].size(), 18u);
  for (const auto& study : golden["studies"]) {
    SCOPED_TRACE(study["name"].dump());
    const auto shares = PedAnovaImportance(SpaceOf(study["space"]), TrialsOf(study));
    ASSERT_TRUE(shares.ok()) << shares.status();
    ASSERT_EQ(shares->size(), study["space"].size());
    for (const ParameterImportance& parameter : *shares) {
      const double expected = study["ped_anova"].value(parameter.name, 0.0);
      EXPECT_NEAR(parameter.share, expected, 1e-9) << parameter.name;
    }
    EXPECT_TRUE(std::is_sorted(shares->begin(), shares->end(),
                               [](const auto& a, const auto& b) { return a.share > b.share; }));
  }
}

TEST(PedAnova, AParameterThatFewTrialsHaveCountsNothing) {
  const SearchSpace space = {.parameters = {{.name = "x", .domain = FloatDomain{}},
                                            {.name = "rare", .domain = FloatDomain{}}}};
  std::vector<AssessedTrial> trials;
  for (const double x : {0.1, 0.4, 0.5, 0.9}) trials.push_back({{{"x", x}}, x});
  trials.front().params["rare"] = 0.5;
  const auto shares = PedAnovaImportance(space, trials);
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_EQ(*shares, (std::vector<ParameterImportance>{{"x", 1.0}, {"rare", 0.0}}));
}

TEST(PedAnova, AParameterThatIsTheSameInAllTrialsExplainsNothing) {
  const SearchSpace space = {
      .parameters = {{.name = "x", .domain = FloatDomain{}},
                     {.name = "same", .domain = FloatDomain{}},
                     {.name = "c", .domain = CategoricalDomain{{int64_t{1}, int64_t{2}}}}}};
  std::vector<AssessedTrial> trials;
  for (const double x : {0.1, 0.4, 0.5, 0.9}) {
    trials.push_back({{{"x", x}, {"same", 0.3}, {"c", int64_t{2}}}, x});
  }
  const auto shares = PedAnovaImportance(space, trials);
  ASSERT_TRUE(shares.ok()) << shares.status();
  EXPECT_EQ(*shares, (std::vector<ParameterImportance>{{"x", 1.0}, {"c", 0.0}, {"same", 0.0}}));
}

TEST(PedAnova, AChoiceThatWasTakenBackIsLeftOut) {
  const SearchSpace space = {
      .parameters = {{.name = "c", .domain = CategoricalDomain{{int64_t{1}, int64_t{2}}}}}};
  const std::vector<AssessedTrial> trials = {{{{"c", int64_t{1}}}, 0.0},
                                             {{{"c", int64_t{2}}}, 1.0},
                                             {{{"c", int64_t{2}}}, 2.0},
                                             {{{"c", int64_t{7}}}, 3.0}};
  EXPECT_TRUE(PedAnovaImportance(space, trials).ok());
}

TEST(Importance, NamesWhatCannotBeAssessed) {
  const SearchSpace space = {.parameters = {{.name = "x", .domain = FloatDomain{}}}};
  const SearchSpace single = {
      .parameters = {{.name = "x", .domain = IntDomain{.low = 3, .high = 3}}}};
  const AssessedTrial first = {{{"x", 0.5}}, 1.0};
  const AssessedTrial second = {{{"x", 0.75}}, 2.0};
  const AssessedTrial third = {{{"x", int64_t{3}}}, 3.0};
  struct Case {
    SearchSpace space;
    std::vector<AssessedTrial> trials;
    const char* expected;
  };
  const Case cases[] = {
      {space, {}, "at least 2 completed trials with a finite value, got 0"},
      {space, {first}, "at least 2 completed trials with a finite value, got 1"},
      {space, {first, first}, "expected trials that differ, got 2 with the same value"},
      {single, {first, third}, "expected a parameter that takes two values"},
      {{}, {first, second}, "expected a parameter that takes two values"},
  };
  for (const Case& test : cases) {
    for (const auto& method : {PedAnovaImportance, FanovaImportance}) {
      const auto shares = method(test.space, test.trials);
      EXPECT_EQ(shares.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(shares.status().message()), testing::HasSubstr(test.expected));
    }
  }
}

}  // namespace
}  // namespace hpo
