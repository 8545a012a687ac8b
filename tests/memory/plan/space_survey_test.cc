#include "memory/plan/space_survey.h"

#include <algorithm>
#include <string>

#include "common/study/model_catalog.h"
#include "common/study_file/study_file.h"
#include "gtest/gtest.h"
#include "memory/need/device_defaults.h"
#include "memory/plan/config_advice.h"

namespace hpo::memory {
namespace {

// Knows every model of the catalogue that our trainer runs.
FitDecider Decider(const StudySpec& study, MemoryPolicy policy) {
  StudySpec spec = study;
  spec.memory.policy = policy;
  WorkerFacts worker;
  worker.device = DefaultDevice("cuda", Bytes{});
  for (const char* name : {"all-minilm-l6-v2", "bert-base-uncased", "bert-large-uncased"}) {
    worker.models.push_back({.name = name, .shape = *KnownModelShape(name)});
  }
  return FitDecider(spec, worker);
}

StudySpec ParseSpace(const std::string& parameters) {
  const auto study = ParseStudyFile(
      "name: s\nobjective: {metric: f1, direction: maximize}\n"
      "trainer: {train: t.jsonl, validation: v.jsonl}\nbudget: {trials: 1}\n" +
          parameters,
      "s.yaml", {});
  EXPECT_TRUE(study.ok()) << study.status();
  return *study;
}

SpaceSurvey Survey(const StudySpec& study, const SurveyOptions& options) {
  const auto survey = SurveySpace(study, Decider(study, MemoryPolicy::kStrict), options);
  EXPECT_TRUE(survey.ok()) << survey.status();
  return *survey;
}

const ModelSurvey& Of(const SpaceSurvey& survey, const std::string& model) {
  return *std::find_if(survey.models.begin(), survey.models.end(),
                       [&model](const ModelSurvey& found) { return found.name == model; });
}

// 003: 7 batch sizes x 6 accumulations x 13 lengths for base models, 3 x 4 x 9 for heavy ones.
TEST(SurveySpace, CountsTheCriteriaSpaceAsTheSourcesDo) {
  const SpaceSurvey survey = Survey(*LoadStudy("criteria", {}), {.cards = {GiB(24)}});
  EXPECT_EQ(Of(survey, "bert-base-uncased").configurations, 546);
  EXPECT_EQ(Of(survey, "bert-large-uncased").configurations, 108);
  EXPECT_EQ(Of(survey, "xlm-roberta-base").configurations, 108);  // heavy: 278 million
  EXPECT_EQ(survey.configurations, 4 * 546 + 4 * 108);
  EXPECT_FALSE(survey.sampled);
  EXPECT_EQ(survey.parameters, (std::vector<std::string>{"model.name", "tok.max_length",
                                                         "train.batch_size", "train.grad_accum"}));
}

TEST(SurveySpace, AgreesWithTheDeciderOnEveryConfiguration) {
  const StudySpec study = ParseSpace(R"(parameters:
  model.name: {choices: [bert-base-uncased, bert-large-uncased]}
  tok.max_length: {int: [128, 512], step: 128}
  train.batch_size: {choices: [1, 16, 64]}
  train.lr: {float: [1.0e-6, 1.0e-4], log: true}
)");
  for (const Bytes card : {GiB(8), GiB(12), GiB(16), GiB(24)}) {
    SCOPED_TRACE(FormatBytes(card));
    CardSurvey expected;
    for (const char* model : {"bert-base-uncased", "bert-large-uncased"}) {
      for (int64_t length = 128; length <= 512; length += 128) {
        for (const int64_t batch : {1, 16, 64}) {
          const ParamMap params = {{"model.name", std::string(model)},
                                   {"tok.max_length", length},
                                   {"train.batch_size", batch}};
          const auto fits = [&](MemoryPolicy policy) {
            return JudgeConfig(Decider(study, policy), params, card)->planned.fits;
          };
          ++(fits(MemoryPolicy::kStrict) ? expected.strict.fits : expected.strict.does_not_fit);
          ++(fits(MemoryPolicy::kPlan) ? expected.plan.fits : expected.plan.does_not_fit);
        }
      }
    }
    const SpaceSurvey survey = Survey(study, {.cards = {card}});
    EXPECT_EQ(survey.configurations, 24);
    EXPECT_EQ(survey.cards[0].strict.fits, expected.strict.fits);
    EXPECT_EQ(survey.cards[0].strict.does_not_fit, expected.strict.does_not_fit);
    EXPECT_EQ(survey.cards[0].plan.fits, expected.plan.fits);
    EXPECT_EQ(survey.cards[0].plan.does_not_fit, expected.plan.does_not_fit);
  }
}

TEST(SurveySpace, NamesTheSmallestCardsNeeds) {
  const StudySpec study = *LoadStudy("criteria", {});
  const SpaceSurvey first = Survey(study, {.cards = {GiB(24)}});
  const ModelSurvey& large = Of(first, "bert-large-uncased");
  EXPECT_LT(large.smallest_plan, large.smallest_literal);
  EXPECT_LT(large.smallest_literal, large.largest_literal);
  // A card on which exactly the smallest configuration runs by plan, and one below.
  const Bytes headroom = MiB(256);
  const SpaceSurvey edge = Survey(study, {.cards = {large.smallest_plan + headroom,
                                                    large.smallest_plan + headroom - Bytes{1}}});
  EXPECT_GT(Of(edge, "bert-large-uncased").plan_fits[0], 0);
  EXPECT_EQ(Of(edge, "bert-large-uncased").plan_fits[1], 0);
}

TEST(SurveySpace, NamesTheFieldToCut) {
  const StudySpec study = ParseSpace(R"(parameters:
  model.name: {choices: [bert-base-uncased]}
  tok.max_length: {choices: [128, 512]}
  train.batch_size: {choices: [8, 1024]}
)");
  const SpaceSurvey survey = Survey(study, {.cards = {GiB(24), GiB(2000)}});
  ASSERT_TRUE(survey.cards[0].strict.cut.has_value());
  const SpaceCut& cut = *survey.cards[0].strict.cut;
  EXPECT_EQ(cut.parameter, "train.batch_size");
  EXPECT_EQ(cut.description, "train.batch_size <= 8");
  EXPECT_EQ(cut.misfits_removed, 2);
  EXPECT_EQ(cut.misfits_left, 0);
  EXPECT_EQ(cut.fits_lost, 0);
  EXPECT_FALSE(survey.cards[1].strict.cut.has_value());
}

TEST(SurveySpace, DropsAModelWhereThatIsTheBestCut) {
  const StudySpec study = ParseSpace(R"(parameters:
  model.name: {choices: [all-minilm-l6-v2, bert-large-uncased]}
  tok.max_length: {choices: [128, 256, 512]}
  train.batch_size: {choices: [8, 12, 16]}
)");
  const SpaceSurvey survey = Survey(study, {.cards = {GiB(6)}});
  EXPECT_EQ(survey.cards[0].strict.cut->description, "without bert-large-uncased");
  EXPECT_EQ(survey.cards[0].strict.cut->misfits_removed, 9);
}

TEST(SurveySpace, FollowsConditionsAndParentsThatMemoryDoesNotKnow) {
  const StudySpec study = ParseSpace(R"(parameters:
  model.name: {choices: [bert-base-uncased]}
  style: {choices: [plain, deep]}
  head.layers: {int: [1, 2], when: {style: deep}}
  head.size_1: {choices: [64, 128], when: {style: deep}}
  head.size_2: {choices: [64, 128], when: {head.layers: 2}}
  other: {choices: [1, 2, 3]}
)");
  const SpaceSurvey survey = Survey(study, {.cards = {GiB(24)}});
  // plain, or deep with one layer in two sizes or with two in four.
  EXPECT_EQ(survey.configurations, 1 + 2 + 4);
  EXPECT_EQ(std::count(survey.parameters.begin(), survey.parameters.end(), "other"), 0);
  EXPECT_EQ(std::count(survey.parameters.begin(), survey.parameters.end(), "style"), 1);
}

TEST(SurveySpace, WalksTheTechniquesThatMemoryDependsOn) {
  const SpaceSurvey survey = Survey(ParseSpace(R"(parameters:
  model.name: {choices: [bert-large-uncased]}
  train.optimizer: {choices: [adamw, sgd]}
  train.precision: {choices: [fp32, bf16]}
  memory.checkpoint_every: {choices: [0, 1]}
  train.warmup_ratio: {choices: [0.0, 0.1]}
)"),
                                    {.cards = {GiB(24)}});
  EXPECT_EQ(survey.configurations, 8);
  const ModelSurvey& model = Of(survey, "bert-large-uncased");
  EXPECT_LT(model.smallest_literal, model.largest_literal);
}

TEST(SurveySpace, DrawsWhereThereAreTooManyAndSaysSo) {
  const StudySpec study = ParseSpace(R"(parameters:
  model.name: {choices: [bert-base-uncased]}
  tok.max_length: {int: [16, 512], step: 16}
  train.batch_size: {int: [1, 64]}
)");
  const SpaceSurvey all = Survey(study, {.cards = {GiB(8)}});
  EXPECT_FALSE(all.sampled);
  EXPECT_EQ(all.configurations, 32 * 64);
  const SpaceSurvey drawn = Survey(study, {.cards = {GiB(8)}, .most_configurations = 1000});
  EXPECT_TRUE(drawn.sampled);
  EXPECT_EQ(drawn.configurations, 1000);
  const auto share = [](const SpaceSurvey& survey) {
    return static_cast<double>(survey.cards[0].strict.fits) /
           static_cast<double>(survey.configurations);
  };
  EXPECT_NEAR(share(drawn), share(all), 0.05);
  const SpaceSurvey again = Survey(study, {.cards = {GiB(8)}, .most_configurations = 1000});
  EXPECT_EQ(again.cards[0].strict.fits, drawn.cards[0].strict.fits);
}

TEST(SurveySpace, CountsModelsThatCannotBeTracedApart) {
  const StudySpec study = ParseSpace(R"(parameters:
  model.name: {choices: [bert-base-uncased, some/other-model]}
  train.batch_size: {choices: [8, 16]}
)");
  const SpaceSurvey survey = Survey(study, {.cards = {GiB(24)}});
  EXPECT_EQ(survey.unknown, 2);
  EXPECT_FALSE(Of(survey, "some/other-model").known);
  EXPECT_EQ(survey.cards[0].strict.fits, 2);
  EXPECT_EQ(survey.cards[0].strict.does_not_fit, 0);
}

TEST(SurveySpace, WantsACard) {
  const StudySpec study = *LoadStudy("criteria", {});
  EXPECT_EQ(SurveySpace(study, Decider(study, MemoryPolicy::kStrict), {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo::memory
