#include "worker/agent/session/report_queue.h"

#include <string>
#include <thread>

#include "common/protocol/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_coordinator.h"

namespace hpo::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kSeed = 7;

class ReportQueueTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(session_.Register(coordinator_).ok()); }

  std::vector<std::string> StagesOf(const std::vector<MemoryRecord>& records) const {
    std::vector<std::string> stages;
    for (const MemoryRecord& record : records) stages.push_back(record.stage);
    return stages;
  }

  // Pauses after a refusal are of milliseconds.
  ReportAnswer SendWhenDue() {
    const SystemClock clock;
    while (queue_.due() && clock.Monotonic() < *queue_.due()) std::this_thread::yield();
    return queue_.SendIfDue();
  }

  FakeCoordinator coordinator_;
  WorkerSession session_{WorkerFacts{.worker = "w", .instance_key = "k"}};
  ReportQueue queue_{
      coordinator_, session_,
      LeaseRef{
          .trial = {.study = "s", .number = {3}}, .attempt = {1}, .token = "t", .database = "home"},
      Backoff(absl::Milliseconds(1), absl::Milliseconds(2), kSeed)};
};

TEST_F(ReportQueueTest, RecordsGoWithTheNextMeasurement) {
  queue_.AddMemoryRecord({.stage = "Trial Start", .resident = MiB(300)});
  queue_.SendIfDue();
  EXPECT_THAT(coordinator_.reports(), IsEmpty()) << "records alone can wait a moment";
  ASSERT_TRUE(queue_.due().has_value());
  queue_.AddMemoryRecord({.stage = "Training Start"});
  queue_.AddMeasurement({.step = 1});
  queue_.SendIfDue();
  ASSERT_THAT(coordinator_.reports(), SizeIs(1));
  const AttemptReport report = coordinator_.reports()[0];
  EXPECT_THAT(StagesOf(report.memory_records), ElementsAre("Trial Start", "Training Start"));
  EXPECT_EQ(report.memory_records[0].resident, MiB(300));
  EXPECT_EQ(report.memory_records[1].sequence, 1);
  EXPECT_FALSE(queue_.due().has_value());
}

TEST_F(ReportQueueTest, WhatNobodyTookIsKeptAndGoesWithTheResult) {
  coordinator_.SetAway(true);
  queue_.AddMemoryRecord({.stage = "Trial Start"});
  queue_.AddMeasurement({.step = 1});
  queue_.SendIfDue();
  queue_.AddMemoryRecord({.stage = "Trial Success"});
  FinishRequest result;
  queue_.MoveUnsentTo(result);
  EXPECT_THAT(StagesOf(result.memory_records), ElementsAre("Trial Start", "Trial Success"));
  EXPECT_THAT(result.measurements, SizeIs(1));
}

TEST_F(ReportQueueTest, AnAttemptWithoutAResultTellsTheRestAtOnce) {
  queue_.SendLast();
  EXPECT_THAT(coordinator_.reports(), IsEmpty());
  queue_.AddMemoryRecord({.stage = "Training End"});
  queue_.SendLast();
  ASSERT_THAT(coordinator_.reports(), SizeIs(1));
  EXPECT_THAT(StagesOf(coordinator_.reports()[0].memory_records), ElementsAre("Training End"));
  queue_.SendLast();
  EXPECT_THAT(coordinator_.reports(), SizeIs(1));
}

TEST_F(ReportQueueTest, ATrainersOddLinesNeverCostAReport) {
  queue_.AddMemoryRecord({.stage = ""});
  queue_.AddMemoryRecord({.stage = std::string(MemoryRecord::kLongestStage + 1, 'x')});
  queue_.AddMemoryRecord({.stage = "a", .step = -1});
  for (int64_t i = 0; i < ReportQueue::kMostRecords + 5; ++i) {
    queue_.AddMemoryRecord({.stage = "a", .sequence = 99});
  }
  FinishRequest result;
  queue_.MoveUnsentTo(result);
  ASSERT_THAT(result.memory_records, SizeIs(ReportQueue::kMostRecords));
  EXPECT_EQ(result.memory_records.front().sequence, 0);
  EXPECT_EQ(result.memory_records.back().sequence, ReportQueue::kMostRecords - 1);
}

// A full disk, a failure of the server's, another server for a moment.
TEST_F(ReportQueueTest, AttributesAreSentUntilTheyAreTakenAndElseGoWithTheResult) {
  queue_.AddAttributes(
      {{"rows", "12"}, {"hpo.tags", "[]"}, {"long", '"' + std::string(4096, 'x') + '"'}});
  queue_.AddMeasurement({.step = 1});
  queue_.SendIfDue();
  ASSERT_THAT(coordinator_.reports(), SizeIs(1));
  EXPECT_EQ(coordinator_.reports()[0].attributes, (Attributes{{"rows", "12"}}));
  for (int i = 0; i < 101; ++i) queue_.AddAttributes({{"k" + std::to_string(i), "1"}});
  queue_.AddAttributes({{"rows", "13"}});
  FinishRequest result;
  queue_.MoveUnsentTo(result);
  EXPECT_THAT(result.attributes, SizeIs(kAttributeLimit.most)) << "of the attempt, the new ones";
  EXPECT_EQ(result.attributes.at("rows"), "13");
}

TEST_F(ReportQueueTest, RefusedReportsAreSentAgain) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status refusal(static_cast<absl::StatusCode>(code), "refused");
    if (absl::IsInvalidArgument(refusal)) continue;
    SCOPED_TRACE(refusal.ToString());
    coordinator_.SetReportStatus(refusal);
    queue_.AddMeasurement({.step = code});
    EXPECT_EQ(SendWhenDue().verdict, ReportAnswer::Verdict::kContinue);
    ASSERT_TRUE(queue_.due().has_value());
    coordinator_.SetReportStatus(absl::OkStatus());
    EXPECT_EQ(SendWhenDue().verdict, ReportAnswer::Verdict::kContinue);
    ASSERT_FALSE(coordinator_.reports().empty());
    EXPECT_THAT(coordinator_.reports().back().measurements, ElementsAre(Measurement{.step = code}));
    EXPECT_FALSE(queue_.due().has_value());
  }
}

TEST_F(ReportQueueTest, OnlyTheOwnDatabaseTakesTheTrialAway) {
  const absl::Status aborted = absl::AbortedError("attempt 2");
  queue_.AddMeasurement({.step = 1});
  coordinator_.SetReportStatus(WithRefusal(aborted, {RefusalReason::kSuperseded, "other"}));
  EXPECT_EQ(SendWhenDue().verdict, ReportAnswer::Verdict::kContinue);
  coordinator_.SetReportStatus(WithRefusal(aborted, {RefusalReason::kSuperseded, "home"}));
  EXPECT_EQ(SendWhenDue().verdict, ReportAnswer::Verdict::kLeaseLost);
}

TEST_F(ReportQueueTest, WhatTheServerWillNeverTakeDoesNotHoldUpTheRest) {
  coordinator_.SetReportStatus(absl::InvalidArgumentError("metric: expected a shorter name"));
  queue_.AddMeasurement({.step = 1});
  SendWhenDue();
  EXPECT_FALSE(queue_.due().has_value());
  coordinator_.SetReportStatus(absl::OkStatus());
  queue_.AddMeasurement({.step = 2});
  SendWhenDue();
  EXPECT_THAT(coordinator_.reports().back().measurements, ElementsAre(Measurement{.step = 2}));
}

TEST_F(ReportQueueTest, WhatGatheredGoesInParts) {
  coordinator_.SetAway(true);
  const std::string name(100'000, 'n');
  for (int64_t step = 0; step < 100; ++step) {
    queue_.AddMeasurement({.step = step, .metrics = {{name, 0.5}}});
  }
  SendWhenDue();
  coordinator_.SetAway(false);
  while (queue_.due()) SendWhenDue();
  int64_t next = 0;
  for (const AttemptReport& report : coordinator_.reports()) {
    EXPECT_LE(report.measurements.size(), 42u) << "4 MiB";
    for (const Measurement& measurement : report.measurements) EXPECT_EQ(measurement.step, next++);
  }
  EXPECT_EQ(next, 100);
}

TEST_F(ReportQueueTest, WhatWaitsIsBoundedAndStillCoversTheWholeTime) {
  coordinator_.SetAway(true);
  const std::string name(size_t{1} << 20, 'n');
  for (int64_t step = 0; step < 150; ++step) {
    queue_.AddMeasurement({.step = step, .metrics = {{name, 0.5}}});
  }
  FinishRequest result;
  queue_.MoveUnsentTo(result);
  ASSERT_LE(result.measurements.size(), 64u);
  ASSERT_GE(result.measurements.size(), 32u);
  EXPECT_LE(result.measurements.front().step, 8);
  EXPECT_EQ(result.measurements.back().step, 149);
}

}  // namespace
}  // namespace hpo::agent
