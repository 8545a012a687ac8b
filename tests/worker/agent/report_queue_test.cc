#include "worker/agent/report_queue.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_coordinator.h"

namespace hpo {
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

  FakeCoordinator coordinator_;
  WorkerSession session_{WorkerFacts{.worker = "w", .instance_key = "k"}};
  ReportQueue queue_{coordinator_, session_,
                     LeaseRef{.trial = {.study = "s", .number = {3}}, .attempt = {1}, .token = "t"},
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

}  // namespace
}  // namespace hpo
