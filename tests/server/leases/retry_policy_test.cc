#include "server/leases/retry_policy.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo::server {
namespace {

constexpr Bytes kLimit = GiB(8);
const OomCircumstances kAtLargest = {.limit = kLimit, .largest = kLimit};

TrialOutcome Fails(FailureClass failure_class) {
  return Failed{.failure_class = failure_class, .message = "x"};
}

OutOfMemory Oom(OomKind kind, bool predicted = false) {
  OutOfMemory oom;
  oom.kind = kind;
  oom.predicted = predicted;
  oom.limit = kLimit;
  return oom;
}

// How often the trial runs when every attempt ends this way.
int AttemptsUntilTheEnd(const TrialOutcome& outcome) {
  RetryCounts counts;
  for (int attempts = 1; attempts < 100; ++attempts) {
    const Verdict verdict = AfterOutcome(outcome, counts, kAtLargest);
    if (verdict.end) return attempts;
    counts = verdict.counts;
  }
  return 100;
}

TEST(RetryPolicy, EveryOutcomeHasItsBudget) {
  const std::pair<TrialOutcome, int> cases[] = {{Completed{}, 1},
                                                {StoppedByPruner{}, 1},
                                                {Cancelled{}, 1},
                                                {Fails(FailureClass::kBadData), 1},
                                                {Fails(FailureClass::kBadModel), 1},
                                                {Fails(FailureClass::kBadConfiguration), 1},
                                                {Fails(FailureClass::kDiverged), 1},
                                                {Fails(FailureClass::kProtocol), 1},
                                                {Fails(FailureClass::kInternal), 1},
                                                {Fails(FailureClass::kTrainerCrashed), 3},
                                                {Fails(FailureClass::kTrainerKilled), 3},
                                                {Fails(FailureClass::kDeviceLost), 3},
                                                {Oom(OomKind::kConfiguration), 1},
                                                {Oom(OomKind::kLatePeak), 1},
                                                {Oom(OomKind::kDirtyDevice), 3},
                                                {Oom(OomKind::kFragmentation), 3},
                                                {Oom(OomKind::kHost), 2}};
  for (const auto& [outcome, attempts] : cases) {
    SCOPED_TRACE(OutcomeToJson(outcome).dump());
    EXPECT_EQ(AttemptsUntilTheEnd(outcome), attempts);
  }
}

TEST(RetryPolicy, BudgetsAreCountedApart) {
  RetryCounts counts{.worker_losses = 3, .transient_failures = 2, .host_ooms = 1};
  const Verdict verdict = AfterOutcome(Oom(OomKind::kFragmentation), counts, kAtLargest);
  EXPECT_FALSE(verdict.end);
  counts.device_ooms = 1;
  EXPECT_EQ(verdict.counts, counts);
  EXPECT_EQ(verdict.min_capacity, Bytes{});
}

TEST(RetryPolicy, AnOomEndsTheTrialOnlyAtTheLargestCard) {
  struct Case {
    std::optional<Bytes> largest;
    bool ends;
  };
  const Case cases[] = {{kLimit, true},           {GiB(4), true},
                        {kLimit + MiB(64), true}, {kLimit + MiB(64) + Bytes{1}, false},
                        {GiB(80), false},         {std::nullopt, false}};
  for (const OomKind kind : {OomKind::kConfiguration, OomKind::kLatePeak}) {
    for (const bool predicted : {false, true}) {
      for (const Case& test : cases) {
        SCOPED_TRACE(test.largest ? FormatBytes(*test.largest) : "unknown");
        const Verdict verdict =
            AfterOutcome(Oom(kind, predicted), {}, {.limit = kLimit, .largest = test.largest});
        EXPECT_EQ(verdict.end.has_value(), test.ends);
        EXPECT_EQ(verdict.min_capacity, test.ends ? Bytes{} : kLimit);
      }
    }
  }
}

TEST(RetryPolicy, AnOomThatNoParameterExplainsIsRetriedOnceAtTheLargestCard) {
  for (const OomKind kind : {OomKind::kConfiguration, OomKind::kLatePeak}) {
    const OomCircumstances at = {.limit = kLimit, .largest = kLimit, .explained = false};
    const Verdict first = AfterOutcome(Oom(kind), {}, at);
    EXPECT_FALSE(first.end);
    EXPECT_EQ(first.min_capacity, Bytes{}) << "anywhere";
    EXPECT_EQ(first.note, "out of memory, which no parameter explains, retry 1 of 1");
    const Verdict second = AfterOutcome(Oom(kind), first.counts, at);
    ASSERT_TRUE(second.end);
    EXPECT_EQ(PruneReasonOf(*second.end), PruneReason::kOutOfMemory);
    // Where there is a larger card, it is the next to try.
    const OomCircumstances larger = {.limit = kLimit, .largest = GiB(80), .explained = false};
    EXPECT_EQ(AfterOutcome(Oom(kind), {}, larger).min_capacity, kLimit);
  }
}

TEST(RetryPolicy, AnOomWithoutALimitTakesTheAttempts) {
  const Verdict verdict = AfterOutcome(OutOfMemory{}, {}, kAtLargest);
  ASSERT_TRUE(verdict.end);
  EXPECT_EQ(std::get<OutOfMemory>(*verdict.end).limit, kLimit);
}

TEST(RetryPolicy, AWorkerMayBeLostThreeTimes) {
  RetryCounts counts;
  for (int loss = 1; loss <= 3; ++loss) {
    const Verdict verdict = AfterWorkerLoss(counts, 1);
    EXPECT_FALSE(verdict.end) << loss;
    counts = verdict.counts;
  }
  const Verdict last = AfterWorkerLoss(counts, 1);
  ASSERT_TRUE(last.end);
  EXPECT_EQ(std::get<Failed>(*last.end).failure_class, FailureClass::kWorkerLost);
}

TEST(RetryPolicy, TwoDifferentWorkersArePoison) {
  EXPECT_TRUE(AfterWorkerLoss({}, 2).end.has_value());
}

TEST(RetryPolicy, PreemptionHasNoBudget) {
  const RetryCounts often{.preemptions = 1000};
  const Verdict verdict = AfterRelease(ReleaseReason::kPreempted, {}, "", often, kAtLargest);
  EXPECT_FALSE(verdict.end);
  EXPECT_EQ(verdict.counts.preemptions, 1001);
}

TEST(RetryPolicy, ARejectionAboveTheLimitWantsALargerCard) {
  const Verdict requeued =
      AfterRelease(ReleaseReason::kRejected, GiB(9), "", {}, {.limit = kLimit, .largest = GiB(16)});
  EXPECT_FALSE(requeued.end);
  EXPECT_EQ(requeued.min_capacity, kLimit);
  const Verdict ended = AfterRelease(ReleaseReason::kRejected, GiB(9), "", {}, kAtLargest);
  ASSERT_TRUE(ended.end);
  EXPECT_EQ(PruneReasonOf(*ended.end), PruneReason::kPredictedOutOfMemory);
}

TEST(RetryPolicy, ARejectionWithinTheLimitIsADirtyDevice) {
  RetryCounts counts;
  for (int rejection = 1; rejection <= 2; ++rejection) {
    const Verdict verdict = AfterRelease(ReleaseReason::kRejected, GiB(7), "", counts, kAtLargest);
    EXPECT_FALSE(verdict.end) << rejection;
    EXPECT_EQ(verdict.min_capacity, Bytes{});
    counts = verdict.counts;
  }
  EXPECT_TRUE(
      AfterRelease(ReleaseReason::kRejected, GiB(7), "", counts, kAtLargest).end.has_value());
}

TEST(RetryPolicy, AnUnhealthyWorkerCountsAsALoss) {
  const Verdict verdict =
      AfterRelease(ReleaseReason::kUnhealthy, {}, "sticky error", {}, kAtLargest);
  EXPECT_FALSE(verdict.end);
  EXPECT_EQ(verdict.counts.worker_losses, 1);
}

}  // namespace
}  // namespace hpo::server
