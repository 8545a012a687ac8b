#include "common/interop/importance/study_importance.h"

#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/interop/importance/fanova.h"
#include "common/interop/importance/ped_anova.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;

SearchSpace Space() {
  return {.parameters = {
              {.name = "x", .domain = FloatDomain{}},
              {.name = "y", .domain = FloatDomain{}},
              {.name = "seed", .domain = IntDomain{.low = 1, .high = 9}, .modelled = false}}};
}

// Of the loss 3 x + y, and a seed that stands for nothing.
std::vector<AssessedTrial> Drawn(int count) {
  Rng rng(7, 0);
  std::vector<AssessedTrial> trials;
  for (int i = 0; i < count; ++i) {
    const double x = rng.Uniform();
    const double y = rng.Uniform();
    trials.push_back({{{"x", x}, {"y", y}, {"seed", int64_t{i % 9 + 1}}}, 3.0 * x + y});
  }
  return trials;
}

TEST(StudyImportance, SharesLieWithinTheirRangesWhichShrinkWithTrials) {
  for (const ImportanceMethod method : {ImportanceMethod::kPedAnova, ImportanceMethod::kFanova}) {
    double width_of_few = 0.0;
    for (const int count : {40, 1000}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(method) << " of " << count);
      const auto assessment = AssessImportance(Space(), Drawn(count), method);
      ASSERT_TRUE(assessment.ok()) << assessment.status();
      ASSERT_EQ(assessment->parameters.size(), 2u) << "the seed is not modelled";
      EXPECT_GE(assessment->num_resamples, 60);
      const AssessedParameter& first = assessment->parameters.front();
      EXPECT_EQ(first.name, "x");
      for (const AssessedParameter& parameter : assessment->parameters) {
        EXPECT_LE(0.0, parameter.low);
        EXPECT_LT(parameter.low, parameter.share) << parameter.name;
        EXPECT_LT(parameter.share, parameter.high) << parameter.name;
        EXPECT_LE(parameter.high, 1.0);
      }
      if (count == 40) width_of_few = first.high - first.low;
      if (count == 1000) {
        EXPECT_LT(first.high - first.low, width_of_few);
      }
    }
  }
}

TEST(StudyImportance, TheSharesAreThoseOfTheMethod) {
  const std::vector<AssessedTrial> trials = Drawn(200);
  const std::pair<ImportanceMethod, std::vector<ParameterImportance>> cases[] = {
      {ImportanceMethod::kPedAnova, PedAnovaImportance(Space(), trials).value()},
      {ImportanceMethod::kFanova, FanovaImportance(Space(), trials).value()}};
  for (const auto& [method, with_seed] : cases) {
    SearchSpace modelled = Space();
    modelled.parameters.pop_back();
    const auto expected = method == ImportanceMethod::kFanova
                              ? FanovaImportance(modelled, trials).value()
                              : PedAnovaImportance(modelled, trials).value();
    const auto assessment = AssessImportance(Space(), trials, method).value();
    EXPECT_EQ(with_seed.size(), 3u);
    ASSERT_EQ(assessment.parameters.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(assessment.parameters[i].name, expected[i].name);
      EXPECT_EQ(assessment.parameters[i].share, expected[i].share);
    }
    EXPECT_EQ(AssessImportance(Space(), trials, method)->parameters, assessment.parameters);
  }
}

TEST(StudyImportance, ObjectivesAreFoundByTheirMetric) {
  StudySpec spec;
  spec.name = "s";
  spec.objectives = {{.metric = "f1", .direction = Direction::kMaximize},
                     {.metric = "loss", .direction = Direction::kMinimize}};
  EXPECT_EQ(FindObjective(spec, "", "metric")->metric, "f1");
  const Objective loss = FindObjective(spec, "loss", "metric").value();
  EXPECT_EQ(LossOf(loss, 0.25), 0.25);
  EXPECT_EQ(LossOf(spec.objectives.front(), 0.25), -0.25);
  const absl::Status refused = FindObjective(spec, "accuracy", "metric").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("metric: expected an objective of s, f1 or loss; got 'accuracy'"));
}

}  // namespace
}  // namespace hpo
