#include "memory/plan/config_advice.h"

#include <string>

#include "common/study/model_catalog.h"
#include "gtest/gtest.h"
#include "memory/need/device_defaults.h"

namespace hpo::memory {
namespace {

FitDecider Decider(MemoryPolicy policy, const std::string& kind = "cuda", Bytes base = MiB(640)) {
  StudySpec study;
  study.memory.policy = policy;
  WorkerFacts worker;
  worker.device = DefaultDevice(kind, Bytes{});
  if (kind != "cpu") worker.device.base = base;
  for (const char* const name :
       {"bert-large-uncased", "xlm-roberta-base", "Qwen/Qwen2.5-7B-Instruct"}) {
    worker.models.push_back({.name = name, .shape = *KnownModelShape(name)});
  }
  return FitDecider(study, worker);
}

// The configuration of a reported out-of-memory error on 24 GB.
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
  EXPECT_EQ(card.workspace, Bytes{19136512}) << "as torch reports it of an A100";
  EXPECT_EQ(kLargestCudaWorkspace, Bytes{69206016}) << "as torch reports it of an H100";
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

// 14 rows are not the end: 15 do not fit, 16 to 21 do, as their segments fall better.
// On a card on which 15 rows fit, 14 do not.
TEST(LargestBatchSize, IsTheLargestWhereTheNeedIsNotMonotone) {
  const FitDecider strict = Decider(MemoryPolicy::kStrict);
  ParamMap params = {{"model.name", std::string("xlm-roberta-base")},
                     {"tok.max_length", int64_t{64}},
                     {"train.batch_size", int64_t{15}}};
  const auto of_15_rows = JudgeConfig(strict, params, GiB(64));
  ASSERT_TRUE(of_15_rows.ok()) << of_15_rows.status();
  const Bytes card =
      CapacityFor(RequiredBytes(of_15_rows->planned), strict.device(), strict.memory());
  const auto largest = LargestBatchSize(strict, params, card, 1 << 16);
  ASSERT_TRUE(largest.ok()) << largest.status();
  ASSERT_TRUE(largest->has_value());
  const int64_t rows = (*largest)->planned.plan.micro_batch;
  EXPECT_GE(rows, 15);
  int64_t num_misfits = 0;
  for (int64_t batch = 1; batch < rows + 16; ++batch) {
    params["train.batch_size"] = batch;
    const auto verdict = JudgeConfig(strict, params, card);
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_EQ(verdict->planned.margin, 0.03) << batch;
    EXPECT_FALSE(batch > rows && verdict->planned.fits) << batch;
    num_misfits += batch < rows && !verdict->planned.fits ? 1 : 0;
  }
  EXPECT_GT(num_misfits, 0);
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
  // Just below what one row of 480 tokens needs with every other change, in live bytes.
  const FitDecider plan = Decider(MemoryPolicy::kPlan, "cpu");
  const Bytes row = Advise(FailedConfig(), MiB(1), "cpu").smallest_changed_capacity - MiB(2);
  const ConfigAdvice advice = Advise(FailedConfig(), row, "cpu");
  EXPECT_TRUE(advice.fits);
  ASSERT_GE(advice.changes.size(), 2u);
  const ConfigChange& last = advice.changes.back();
  EXPECT_EQ(last.verdict.planned.plan.micro_batch, 1);
  const int64_t length = *FindInt(last.params, "tok.max_length");
  EXPECT_LT(length, 480);
  EXPECT_EQ(length % kPaddingMultiple, 0);
  // The next longer one would not.
  ParamMap longer = last.params;
  longer["tok.max_length"] = length + kPaddingMultiple;
  EXPECT_FALSE(JudgeConfig(plan, longer, row)->planned.fits);
}

// Adapters on 4-bit weights: layers are computed again, and no text is cut.
TEST(AdviseConfig, LayersAreComputedAgainBeforeTextsAreCut) {
  const ParamMap params = {{"model.name", std::string("Qwen/Qwen2.5-7B-Instruct")},
                           {"train.batch_size", int64_t{2}},
                           {"train.grad_accum", int64_t{8}},
                           {"tok.max_length", int64_t{2048}},
                           {"train.precision", std::string("bf16")},
                           {"lora.rank", int64_t{128}},
                           {"lora.targets", std::string("all-linear")},
                           {"lora.base", std::string("nf4")}};
  const ConfigAdvice advice = Advise(params, GiB(24));
  EXPECT_TRUE(advice.fits);
  ASSERT_EQ(advice.changes.size(), 1u);
  EXPECT_EQ(advice.changes[0].what, "recompute every layer");
  EXPECT_EQ(advice.changes[0].verdict.planned.plan.micro_batch, 2);
  EXPECT_LE(advice.smallest_changed_capacity, GiB(16));
}

// Adapters on a model in 32 bits: that layers are computed again is not enough.
TEST(AdviseConfig, FrozenWeightsAreQuantisedBeforeTextsAreCut) {
  const ParamMap params = {{"model.name", std::string("Qwen/Qwen2.5-7B-Instruct")},
                           {"train.batch_size", int64_t{2}},
                           {"train.grad_accum", int64_t{8}},
                           {"tok.max_length", int64_t{2048}},
                           {"lora.rank", int64_t{16}}};
  const ConfigAdvice advice = Advise(params, GiB(24));
  EXPECT_TRUE(advice.fits);
  ASSERT_FALSE(advice.changes.empty());
  EXPECT_EQ(FindString(advice.changes.back().params, "lora.base"), "nf4");
  EXPECT_EQ(FindInt(advice.changes.back().params, "tok.max_length"), 2048);
  Bytes before = advice.literal.required;
  for (const ConfigChange& change : advice.changes) {
    EXPECT_LT(change.verdict.required, before) << change.what;
    before = change.verdict.required;
  }
}

TEST(AdviseConfig, OffersNothingThatDoesNotHelp) {
  const ParamMap params = {{"model.name", std::string("bert-large-uncased")},
                           {"train.batch_size", int64_t{1}},
                           {"tok.max_length", int64_t{64}}};
  const ConfigAdvice advice = Advise(params, GiB(2));
  EXPECT_FALSE(advice.fits);
  EXPECT_TRUE(advice.changes.empty()) << advice.changes.front().what;
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
  EXPECT_LE(advice.smallest_changed_capacity, advice.smallest_capacity);
  const ConfigAdvice changed = Advise(FailedConfig(), advice.smallest_changed_capacity);
  EXPECT_TRUE(changed.fits);
  EXPECT_EQ(FindInt(changed.changes.back().params, "tok.max_length"), 480);
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
}  // namespace hpo::memory
