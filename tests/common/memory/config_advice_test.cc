#include "common/memory/config_advice.h"

#include <string>

#include "common/memory/device_defaults.h"
#include "common/model_catalog.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

FitDecider Decider(MemoryPolicy policy, const std::string& kind = "cuda") {
  StudySpec study;
  study.memory.policy = policy;
  WorkerFacts worker;
  worker.device = DefaultDevice(kind, Bytes{});
  worker.models.push_back(
      {.name = "bert-large-uncased", .shape = *KnownModelShape("bert-large-uncased")});
  return FitDecider(study, worker);
}

// The configuration that ran out of memory in the sources (003).
ParamMap FailedConfig() {
  return {{"model.name", std::string("bert-large-uncased")},
          {"train.batch_size", int64_t{48}},
          {"train.grad_accum", int64_t{4}},
          {"tok.max_length", int64_t{480}}};
}

ConfigAdvice Advise(const ParamMap& params, Bytes card, const std::string& kind = "cuda") {
  const auto advice = AdviseConfig(Decider(MemoryPolicy::kStrict, kind),
                                   Decider(MemoryPolicy::kPlan, kind), params, card);
  EXPECT_TRUE(advice.ok()) << advice.status();
  return *advice;
}

TEST(DeviceDefaults, AreNamedAsSuchAndOnlyACardHasABase) {
  const DeviceProfile card = DefaultDevice("cuda", GiB(24));
  EXPECT_EQ(card.kind, "cuda");
  EXPECT_EQ(card.total, GiB(24));
  EXPECT_GT(card.base, Bytes{});
  EXPECT_NE(card.name.find("shipped defaults"), std::string::npos);
  EXPECT_EQ(DefaultDevice("cpu", GiB(1)).base, Bytes{});
}

TEST(JudgeConfig, SaysWhatIsRequiredWithTheMarginAndWhatIsUsable) {
  const auto verdict = JudgeConfig(Decider(MemoryPolicy::kStrict), FailedConfig(), GiB(24));
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_FALSE(verdict->planned.fits);
  EXPECT_EQ(verdict->planned.plan.micro_batch, 48);
  EXPECT_GT(verdict->required, verdict->planned.estimate.needed_limit);
  EXPECT_EQ(verdict->usable, GiB(24) - Bytes{GiB(24).count / 100 * 2});
}

TEST(JudgeConfig, AModelOfWhichNothingIsKnownIsNotFound) {
  ParamMap params = FailedConfig();
  params["model.name"] = std::string("gpt-7");
  const auto verdict = JudgeConfig(Decider(MemoryPolicy::kStrict), params, GiB(24));
  EXPECT_EQ(verdict.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(verdict.status().message().find("gpt-7"), absl::string_view::npos);
}

TEST(LargestBatchSize, IsTheLastOneThatFits) {
  const FitDecider strict = Decider(MemoryPolicy::kStrict);
  for (const int64_t most : {int64_t{1}, int64_t{7}, int64_t{64}, int64_t{1000}}) {
    for (const Bytes card : {GiB(9), GiB(16), GiB(24), GiB(80)}) {
      SCOPED_TRACE(testing::Message() << most << " on " << FormatBytes(card));
      const auto largest = LargestBatchSize(strict, FailedConfig(), card, most);
      ASSERT_TRUE(largest.ok()) << largest.status();
      ASSERT_TRUE(largest->has_value());
      const int64_t rows = (*largest)->planned.plan.micro_batch;
      EXPECT_LE((*largest)->required, (*largest)->usable);
      ASSERT_LE(rows, most);
      if (rows == most) continue;
      ParamMap more = FailedConfig();
      more["train.batch_size"] = rows + 1;
      EXPECT_FALSE(JudgeConfig(strict, more, card)->planned.fits);
    }
  }
}

TEST(LargestBatchSize, IsNoneWhereNotEvenOneRowFits) {
  const auto largest = LargestBatchSize(Decider(MemoryPolicy::kStrict), FailedConfig(), GiB(4), 64);
  ASSERT_TRUE(largest.ok());
  EXPECT_FALSE(largest->has_value());
}

TEST(AdviseConfig, NothingIsChangedWhereItFits) {
  const ConfigAdvice advice = Advise(FailedConfig(), GiB(80));
  EXPECT_TRUE(advice.fits);
  EXPECT_TRUE(advice.literal.planned.fits);
  EXPECT_TRUE(advice.changes.empty());
}

TEST(AdviseConfig, ASmallerMicroBatchKeepsTheEffectiveBatch) {
  const ConfigAdvice advice = Advise(FailedConfig(), GiB(24));
  EXPECT_TRUE(advice.fits);
  ASSERT_EQ(advice.changes.size(), 1u);
  const ConfigChange& change = advice.changes[0];
  EXPECT_EQ(change.params, FailedConfig());
  EXPECT_EQ(change.verdict.planned.plan.effective_batch, 192);
  EXPECT_LT(change.verdict.planned.plan.micro_batch, 48);
  EXPECT_LE(change.verdict.required, change.verdict.usable);
  const MemoryPlan& plan = change.verdict.planned.plan;
  EXPECT_EQ(change.what,
            absl::StrCat("micro-batch ", plan.micro_batch, " in ", plan.NumParts(), " parts"));
}

TEST(AdviseConfig, TextsAreCutWhereOneRowIsTooMany) {
  // Between what one row of 480 tokens needs and what one of 16 does, in live bytes.
  const FitDecider plan = Decider(MemoryPolicy::kPlan, "cpu");
  const Bytes row = JudgeConfig(plan, FailedConfig(), Bytes{1})->required;
  const ConfigAdvice advice = Advise(FailedConfig(), row - MiB(1), "cpu");
  EXPECT_TRUE(advice.fits);
  ASSERT_EQ(advice.changes.size(), 2u);
  EXPECT_EQ(advice.changes[0].verdict.planned.plan.micro_batch, 1);
  const int64_t length = *FindInt(advice.changes[1].params, "tok.max_length");
  EXPECT_LT(length, 480);
  EXPECT_EQ(length % kPaddingMultiple, 0);
  EXPECT_LT(advice.changes[1].verdict.required, advice.changes[0].verdict.required);
  // The next longer one would not.
  ParamMap longer = advice.changes[1].params;
  longer["tok.max_length"] = length + kPaddingMultiple;
  EXPECT_FALSE(JudgeConfig(plan, longer, row - MiB(1))->planned.fits);
}

TEST(AdviseConfig, EvaluationIsShrunkBeforeTraining) {
  ParamMap params = FailedConfig();
  params["train.batch_size"] = int64_t{2};
  params["train.grad_accum"] = int64_t{1};
  params["train.eval_batch_multiplier"] = int64_t{256};
  const FitDecider strict = Decider(MemoryPolicy::kStrict, "cpu");
  const auto literal = JudgeConfig(strict, params, GiB(64));
  ASSERT_EQ(literal->planned.estimate.peak_phase, "evaluation");
  const ConfigAdvice advice = Advise(params, Bytes{literal->required.count / 10 * 9}, "cpu");
  EXPECT_TRUE(advice.fits);
  ASSERT_EQ(advice.changes.size(), 1u);
  EXPECT_EQ(FindInt(advice.changes[0].params, "train.eval_batch_multiplier"), 1);
  EXPECT_EQ(advice.changes[0].verdict.planned.plan.micro_batch, 2);
}

TEST(AdviseConfig, SaysWhenNothingHelpsAndWhatCardWould) {
  const ConfigAdvice advice = Advise(FailedConfig(), GiB(2));
  EXPECT_FALSE(advice.fits);
  EXPECT_FALSE(advice.changes.empty());
  EXPECT_TRUE(Advise(FailedConfig(), advice.smallest_capacity).fits);
  const FitDecider plan = Decider(MemoryPolicy::kPlan);
  EXPECT_FALSE(JudgeConfig(plan, FailedConfig(), advice.smallest_capacity - MiB(1))->planned.fits);
}

TEST(AdviseConfig, RefusesWhatIsNoConfiguration) {
  ParamMap params = FailedConfig();
  params["train.batch_size"] = int64_t{0};
  const auto advice =
      AdviseConfig(Decider(MemoryPolicy::kStrict), Decider(MemoryPolicy::kPlan), params, GiB(8));
  EXPECT_EQ(advice.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo
