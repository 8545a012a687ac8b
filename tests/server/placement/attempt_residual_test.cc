#include "server/placement/attempt_residual.h"

#include <functional>

#include "memory/plan/fit_decision.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

const ParamMap kParams = {{"model.name", std::string("tiny")}, {"train.batch_size", int64_t{8}}};
constexpr MemoryPlan kWhole{.effective_batch = 8, .micro_batch = 8};
constexpr MemoryPlan kHalf{.effective_batch = 8, .micro_batch = 4};

memory::MemoryEstimate EstimateOf(const MemoryPlan& plan) {
  return (**memory::FitDecider(BertStudy(), MakeBertWorker("w")).Estimate(kParams, plan)).estimate;
}

AttemptRecord MakeAttempt() {
  AttemptRecord attempt{.trial = TrialNumber{5}};
  attempt.attempt.number = AttemptNumber{2};
  attempt.attempt.plan = kWhole;
  attempt.limit = GiB(1);
  return attempt;
}

FinishRequest Ended(const TrialOutcome& outcome) {
  FinishRequest request;
  request.outcome = outcome;
  request.final_plan = kWhole;
  request.memory.live_peak = EstimateOf(kWhole).live_peak;
  return request;
}

std::optional<ResidualRecord> Judge(const FinishRequest& request) {
  return ResidualOf(BertStudy(), MakeBertWorker("w"), kParams, MakeAttempt(), request);
}

TEST(ResidualOf, ACompletedAttemptIsExact) {
  FinishRequest request = Ended(Completed{});
  request.memory.live_peak = request.memory.live_peak * 3;
  const auto record = Judge(request);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->residual.residual_class, (memory::ResidualClass{.device_kind = "cpu"}));
  EXPECT_NEAR(record->residual.score, 2.0, 1e-9);
  EXPECT_FALSE(record->residual.censored);
  EXPECT_EQ(record->predicted, EstimateOf(kWhole));
  EXPECT_EQ(record->trial, TrialNumber{5});
  EXPECT_EQ(record->attempt, AttemptNumber{2});
  EXPECT_EQ(record->device.name, "test");
}

TEST(ResidualOf, ThePlanThatRanIsWhatCounts) {
  FinishRequest request = Ended(Completed{});
  request.final_plan = kHalf;
  request.memory.live_peak = EstimateOf(kHalf).live_peak;
  const auto record = Judge(request);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->plan, kHalf);
  EXPECT_NEAR(record->residual.score, 0.0, 1e-9);
  request.memory.num_replans = 1;
  EXPECT_EQ(Judge(request)->plan, kWhole) << "its probe had the peak";
  request.memory.num_replans = 0;
  request.final_plan = {};  // a trainer that does not speak of plans
  EXPECT_EQ(Judge(request)->plan, kWhole);
}

TEST(ResidualOf, AnOomBoundsTheSmallestPlanThatMetIt) {
  OutOfMemory oom;
  oom.limit = EstimateOf(kWhole).needed_limit * 2;
  oom.plan = kHalf;
  const auto record = Judge(Ended(oom));
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->residual.censored);
  EXPECT_EQ(record->plan, kHalf);
  EXPECT_EQ(record->limit, oom.limit);
  EXPECT_EQ(record->residual.score, *memory::CensoredScore(EstimateOf(kHalf), oom.limit));
  oom.limit = Bytes{};  // not told: the attempt's
  EXPECT_EQ(Judge(Ended(oom))->limit, GiB(1));
}

TEST(ResidualOf, AnOomThatWasRecoveredFromBoundsThePlanItHadAtFirst) {
  FinishRequest request = Ended(Completed{});
  request.final_plan = kHalf;
  request.memory.num_ooms = 1;
  const auto record = Judge(request);
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->residual.censored);
  EXPECT_EQ(record->plan, kWhole);
}

TEST(ResidualOf, OtherEndsSayNothing) {
  OutOfMemory small_limit;
  small_limit.limit = Bytes{1};
  const auto of_kind = [](OomKind kind) {
    OutOfMemory oom;
    oom.kind = kind;
    return Ended(oom);
  };
  FinishRequest silent = Ended(Completed{});
  silent.memory = {};
  const std::pair<const char*, FinishRequest> cases[] = {
      {"an OOM below the prediction", Ended(small_limit)},
      {"refused, not met", Ended(OutOfMemory{.predicted = true})},
      {"others hold the memory", of_kind(OomKind::kDirtyDevice)},
      {"fragmentation", of_kind(OomKind::kFragmentation)},
      {"host memory", of_kind(OomKind::kHost)},
      {"stopped before its end", Ended(StoppedByPruner{})},
      {"failed", Ended(Failed{})},
      {"nothing reported", silent},
  };
  for (const auto& [name, request] : cases) EXPECT_FALSE(Judge(request)) << name;
  EXPECT_TRUE(Judge(of_kind(OomKind::kLatePeak)));
}

TEST(ResidualOf, WithoutAnEstimateThereIsNoResidual) {
  WorkerFacts foreign = MakeBertWorker("w");
  foreign.plans = false;
  EXPECT_FALSE(ResidualOf(BertStudy(), foreign, kParams, MakeAttempt(), Ended(Completed{})));
}

}  // namespace
}  // namespace hpo::server
