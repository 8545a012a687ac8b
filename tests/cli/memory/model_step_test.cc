#include "memory/offline/model_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "memory/offline/step_advice.h"
#include "nlohmann/json.hpp"
#include "tests/cli/run_program.h"

namespace hpo::cli {
namespace {

const memory::OfflineDevice kCard = memory::ParseDevice({.cards = {"24GiB"}}).value();

memory::StepDescription Step(const std::string& model, int64_t batch, int64_t length = 128) {
  const auto step =
      memory::MakeModelStep(memory::FindModel(model).value(), {}, kCard,
                            {.batch_size = batch, .grad_accum = 2, .max_length = length});
  EXPECT_TRUE(step.ok()) << step.status();
  return *step;
}

TEST(UsesTrainer, OurKernelsWhereTheyRunTheModelAndNothingElseIsAsked) {
  const ModelShape bert = memory::FindModel("bert-base-uncased")->shape;
  const ModelShape roberta = memory::FindModel("roberta-base")->shape;
  EXPECT_TRUE(memory::UsesTrainer({}, bert).value());
  EXPECT_TRUE(memory::UsesTrainer({.kernels = "hpo-trainer"}, bert).value());
  EXPECT_FALSE(memory::UsesTrainer({.kernels = "huggingface"}, bert).value());
  EXPECT_FALSE(memory::UsesTrainer({.precision = "bfloat16"}, bert).value());
  EXPECT_FALSE(memory::UsesTrainer({.optimizer = "sgd"}, bert).value());
  EXPECT_TRUE(memory::UsesTrainer({}, roberta).value());
  const ModelShape unknown = {.family = "t5"};
  EXPECT_FALSE(memory::UsesTrainer({}, unknown).value());
  EXPECT_EQ(memory::UsesTrainer({.kernels = "hpo-trainer"}, unknown).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(
      memory::UsesTrainer({.kernels = "hpo-trainer", .optimizer = "sgd"}, bert).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(MakeModelStep, FollowsTheConfiguration) {
  const auto step =
      memory::MakeModelStep(memory::FindModel("roberta-base").value(),
                            {.precision = "float16-autocast", .optimizer = "adamw-fused"}, kCard,
                            {.batch_size = 3, .grad_accum = 5, .max_length = 64, .dropout = 0.0});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->batch, 3);
  EXPECT_EQ(step->accumulation, 5);
  EXPECT_EQ(step->length, 64);
  EXPECT_EQ(step->optimizer, memory::StepOptimizer::kAdamFused);
  EXPECT_EQ(step->precision, memory::StepPrecision::kAutocast);
  EXPECT_EQ(step->model->shape.hidden_dropout, 0.0);
}

TEST(JudgeStep, RequiresTheNeedWithItsMargin) {
  const memory::ConfigVerdict verdict = memory::JudgeStep(Step("roberta-base", 8), kCard, GiB(24));
  EXPECT_TRUE(verdict.planned.fits);
  EXPECT_GT(verdict.required, verdict.planned.estimate.needed_limit);
  EXPECT_EQ(verdict.planned.plan.effective_batch, 16);
  EXPECT_GT(verdict.planned.estimate.base, Bytes{});
  EXPECT_FALSE(memory::JudgeStep(Step("roberta-base", 8), kCard, GiB(2)).planned.fits);
}

TEST(LargestStep, FitsAndTheNextOneDoesNot) {
  for (const Bytes card : {GiB(8), GiB(24)}) {
    const memory::StepDescription step = Step("roberta-base", 1, 256);
    const auto largest = memory::LargestStep(step, kCard, card, 4096);
    ASSERT_TRUE(largest.has_value());
    EXPECT_LE(largest->required, largest->usable);
    memory::StepDescription more = step;
    more.batch = largest->planned.plan.micro_batch + 1;
    EXPECT_GT(memory::JudgeStep(more, kCard, card).required, largest->usable);
  }
  EXPECT_FALSE(memory::LargestStep(Step("roberta-base", 1), kCard, GiB(2), 4096).has_value());
}

TEST(AdviseStep, KeepsTheEffectiveBatchAndEndsWithWhatFits) {
  const memory::StepDescription step = Step("microsoft/deberta-v3-base", 33, 384);
  const memory::ConfigAdvice advice = memory::AdviseStep(step, {}, kCard, GiB(16));
  EXPECT_FALSE(advice.literal.planned.fits);
  EXPECT_TRUE(advice.fits);
  ASSERT_FALSE(advice.changes.empty());
  for (const memory::ConfigChange& change : advice.changes) {
    EXPECT_EQ(change.verdict.planned.plan.effective_batch, 66);
  }
  EXPECT_LE(advice.changes.back().verdict.required, advice.changes.back().verdict.usable);
  EXPECT_TRUE(memory::AdviseStep(step, {}, kCard, advice.smallest_capacity).fits);
  EXPECT_TRUE(memory::AdviseStep(step, {}, kCard, advice.smallest_changed_capacity).fits);
}

TEST(StepNeeds, IsAnUpperBoundOfTheVerdictAndCloseToIt) {
  StudySpec study;
  study.trainer.defaults = {{"model.name", std::string("roberta-base")}};
  memory::StepNeeds needs(study, kCard);
  for (const int64_t micro_batch : {1, 8, 32}) {
    const memory::TrainingConfig config = {.batch_size = 32, .grad_accum = 2, .max_length = 256};
    const MemoryPlan plan = {.effective_batch = 64, .micro_batch = micro_batch};
    const Bytes need = needs.Of({}, config, plan);
    memory::StepDescription step = Step("roberta-base", micro_batch, 256);
    const Bytes judged = memory::JudgeStep(step, kCard, GiB(24)).required;
    EXPECT_GE(need.count, judged.count * 99 / 100);
    EXPECT_LE(need.count, judged.count * 115 / 100);
    EXPECT_EQ(needs.Of({}, config, plan), need);
  }
  EXPECT_EQ(needs.Of({{"model.name", std::string("nobody/knows")}}, {}, {}), Bytes{});
}

TEST(MemoryFitOfAStep, IsMarkedAsHuggingFaces) {
  const nlohmann::json json =
      RunOfflineJson({"memory", "fit", "--model", "roberta-base", "--card", "8GiB,24GiB",
                      "--lengths", "256", "--kernels", "huggingface"});
  EXPECT_EQ(json["basis"]["kernels"], "Hugging Face");
  EXPECT_EQ(json["basis"]["optimizer"], "adamw-foreach");
  EXPECT_LT(json["cells"][0]["micro_batch"], json["cells"][1]["micro_batch"]);
  ExpectRefused({"memory", "fit", "--model", "roberta-base", "--card", "8GiB", "--device", "cpu",
                 "--kernels", "huggingface"},
                2, "--device: expected cuda");
  ExpectRefused(
      {"memory", "fit", "--model", "roberta-base", "--card", "8GiB", "--precision", "fp8"}, 2,
      "--precision");
}

TEST(MemoryPlanOfAStep, ShowsTheChanges) {
  const nlohmann::json json = RunOfflineJson(
      {"memory", "plan", "model.name=roberta-large", "train.batch_size=48", "train.grad_accum=4",
       "tok.max_length=480", "--card", "24GiB", "--kernels", "huggingface"});
  EXPECT_EQ(json["strict"]["fits"], false);
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["changes"].back()["verdict"]["plan"]["effective_batch"], 192);
  EXPECT_EQ(json["basis"]["kernels"], "Hugging Face");
  ExpectRefused({"memory", "plan", "model.name=roberta-large", "head.layers=1", "--card", "24GiB",
                 "--kernels", "huggingface"},
                2, "head.layers");
}

}  // namespace
}  // namespace hpo::cli
