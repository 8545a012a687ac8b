#include "worker/agent/attempt/result_courier.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/files/read_file.h"
#include "common/protocol/refusal.h"
#include "tests/fakes/full_disk.h"
#include "tests/worker/agent/agent_loop_fixture.h"

namespace hpo::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kHome[] = "home";
constexpr char kOther[] = "other";

class ResultCourierTest : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    folder_ =
        std::filesystem::path(::testing::TempDir()) /
        (std::string("courier-") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    coordinator_.SetHeartbeatInterval(absl::Milliseconds(20));
    ASSERT_TRUE(session_.Register(coordinator_).ok());
    outbox_.emplace(Open());
    Start({.first_retry = absl::ZeroDuration(), .longest_retry = absl::ZeroDuration()});
  }
  void TearDown() override {
    courier_.reset();
    std::filesystem::remove_all(folder_);
  }

  Outbox Open() { return Outbox::Open((folder_ / "outbox").string()).value(); }

  void Start(CourierOptions options) {
    courier_.reset();
    courier_.emplace(coordinator_, session_, keeper_, *outbox_, options,
                     [this](const LeaseRef& lease, const absl::StatusOr<FinishResult>&) {
                       settled_.push_back(lease.trial.number.value);
                     });
  }

  static FinishRequest Result(int64_t trial) {
    return {.lease = {.trial = {.study = "s", .number = {trial}},
                      .attempt = {1},
                      .token = "t",
                      .database = kHome},
            .outcome = Completed{.metrics = {{"macro_f1", 0.5}}, .model_path = ""},
            .memory = {},
            .final_plan = {.effective_batch = 1, .micro_batch = 1},
            .measurements = {},
            .memory_records = {}};
  }

  // Results of `trial` are refused with `status`; others are taken.
  void Refuse(int64_t trial, const absl::Status& status) {
    coordinator_.OnFinish([trial, status](const FakeCoordinator::Finish& finish) {
      return finish.request.lease.trial.number.value == trial ? status : absl::OkStatus();
    });
  }

  std::vector<int64_t> Stored() const {
    std::vector<int64_t> trials;
    for (const FinishRequest& result : coordinator_.results()) {
      trials.push_back(result.lease.trial.number.value);
    }
    return trials;
  }

  std::filesystem::path folder_;
  FakeCoordinator coordinator_;
  WorkerSession session_{WorkerFacts{.worker = "w", .instance_key = "k"}};
  FakeCapacity capacity_;
  WakeUp wake_;
  LeaseKeeper keeper_{coordinator_, session_, capacity_, wake_, /*seed=*/1};
  std::optional<Outbox> outbox_;
  std::optional<ResultCourier> courier_;
  std::vector<int64_t> settled_;
};

// ---- What is never thrown away ----

TEST_F(ResultCourierTest, NoCodeAloneLosesAResultOrHoldsUpTheNext) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status refusal(static_cast<absl::StatusCode>(code), "refused");
    if (IsServerAway(refusal) || absl::IsInvalidArgument(refusal)) continue;
    SCOPED_TRACE(refusal.ToString());
    const int64_t trial = 2 * code;
    Refuse(trial, refusal);
    courier_->Accept(Result(trial));
    courier_->Accept(Result(trial + 1));
    EXPECT_TRUE(courier_->DeliverAll().ok());
    EXPECT_EQ(Stored().back(), trial + 1);
    EXPECT_THAT(Open().pending(), SizeIs(1)) << "on disk, too";
    Refuse(-1, absl::OkStatus());
    EXPECT_TRUE(courier_->DeliverAll().ok());
    EXPECT_EQ(Stored().back(), trial);
    EXPECT_FALSE(courier_->owes());
  }
}

TEST_F(ResultCourierTest, WhatAnotherDatabaseSaysIsNotBelieved) {
  for (const RefusalReason reason : {RefusalReason::kSuperseded, RefusalReason::kUnknownTrial,
                                     RefusalReason::kAnotherDatabase}) {
    Refuse(1, WithRefusal(absl::NotFoundError("study 's': there is none"), {reason, kOther}));
    courier_->Accept(Result(1));
    EXPECT_TRUE(courier_->DeliverAll().ok());
    EXPECT_THAT(Open().pending(), SizeIs(1));
    EXPECT_THAT(settled_, IsEmpty());
    Refuse(-1, absl::OkStatus());
    EXPECT_TRUE(courier_->DeliverAll().ok());
    EXPECT_EQ(Open().pending().size(), 0u);
    settled_.clear();
  }
}

TEST_F(ResultCourierTest, TheOwnDatabaseMaySayThatAnotherAttemptCounts) {
  Refuse(1, WithRefusal(absl::AbortedError("attempt 2"), {RefusalReason::kSuperseded, kHome}));
  courier_->Accept(Result(1));
  EXPECT_TRUE(courier_->DeliverAll().ok());
  EXPECT_FALSE(courier_->owes());
  EXPECT_THAT(settled_, ElementsAre(1));
  EXPECT_THAT(Open().set_aside(), IsEmpty());
}

TEST_F(ResultCourierTest, AServerThatIsAwayHoldsEverything) {
  coordinator_.SetAway(true);
  courier_->Accept(Result(1));
  courier_->Accept(Result(2));
  EXPECT_TRUE(absl::IsUnavailable(courier_->DeliverAll()));
  EXPECT_EQ(coordinator_.num_finish_calls(), 1);
  coordinator_.SetAway(false);
  EXPECT_TRUE(courier_->DeliverAll().ok());
  EXPECT_THAT(Stored(), ElementsAre(1, 2));
}

// ---- What cannot be delivered ----

TEST_F(ResultCourierTest, WhatTheServerWillNeverTakeIsSetAsideAndNamed) {
  Refuse(1, absl::InvalidArgumentError("outcome: expected less text"));
  courier_->Accept(Result(1));
  courier_->Accept(Result(2));
  EXPECT_TRUE(courier_->DeliverAll().ok());
  EXPECT_THAT(Stored(), ElementsAre(2));
  EXPECT_FALSE(courier_->owes());
  EXPECT_THAT(settled_, ElementsAre(1, 2));
  const Outbox reopened = Open();
  EXPECT_THAT(reopened.pending(), IsEmpty());
  ASSERT_THAT(reopened.set_aside(), SizeIs(1));
  EXPECT_THAT(reopened.set_aside()[0], HasSubstr("s-000001-1-"));
  EXPECT_TRUE(coordinator_.AwaitBeats(coordinator_.beats().size() + 2));
  EXPECT_THAT(coordinator_.notice(),
              HasSubstr("1 result set aside in " + (folder_ / "set_aside").string()));
}

TEST_F(ResultCourierTest, AFileThatWasSetAsideCanBeAppendedToTheOutbox) {
  Refuse(1, absl::InvalidArgumentError("no"));
  courier_->Accept(Result(1));
  EXPECT_TRUE(courier_->DeliverAll().ok());
  const std::string file = outbox_->set_aside_folder() + "/" + outbox_->set_aside()[0];
  std::ofstream(folder_ / "outbox", std::ios::app) << ReadFile(file).value();
  ASSERT_THAT(Open().pending(), SizeIs(1));
  EXPECT_EQ(Open().pending()[0].request, Result(1));
}

TEST_F(ResultCourierTest, AResultThatIsRefusedForTooLongIsSetAside) {
  Start({.first_retry = absl::ZeroDuration(),
         .longest_retry = absl::ZeroDuration(),
         .patience = absl::ZeroDuration()});
  Refuse(1, absl::DataLossError("trial 1: damaged"));
  courier_->Accept(Result(1));
  EXPECT_TRUE(courier_->DeliverAll().ok());
  EXPECT_FALSE(courier_->owes());
  EXPECT_THAT(Open().set_aside(), SizeIs(1));
}

TEST_F(ResultCourierTest, WhatCannotBeSetAsideStays) {
  Refuse(1, absl::InvalidArgumentError("no"));
  courier_->Accept(Result(1));
  courier_->Accept(Result(2));
  {
    const FullDisk full;
    EXPECT_TRUE(courier_->DeliverAll().ok());
  }
  EXPECT_THAT(Stored(), ElementsAre(2));
  EXPECT_TRUE(courier_->owes());
  EXPECT_TRUE(courier_->DeliverAll().ok());
  EXPECT_FALSE(courier_->owes());
  EXPECT_THAT(Open().set_aside(), SizeIs(1));
}

// ---- A full disk ----

TEST_F(ResultCourierTest, AFullDiskDoesNotStopDelivery) {
  const FullDisk full;
  courier_->Accept(Result(1));
  EXPECT_THAT(Open().pending(), IsEmpty()) << "the disk is full";
  EXPECT_TRUE(courier_->DeliverAll().ok());
  EXPECT_THAT(Stored(), ElementsAre(1));
  EXPECT_FALSE(courier_->owes());
}

TEST_F(ResultCourierTest, WhatTheDiskRefusedIsWrittenWhenThereIsRoomAgain) {
  coordinator_.SetAway(true);
  {
    const FullDisk full;
    courier_->Accept(Result(1));
    courier_->Accept(Result(2));
    EXPECT_FALSE(courier_->DeliverAll().ok());
    EXPECT_THAT(Open().pending(), IsEmpty());
  }
  EXPECT_FALSE(courier_->DeliverAll().ok());
  const Outbox reopened = Open();
  ASSERT_THAT(reopened.pending(), SizeIs(2));
  EXPECT_EQ(reopened.pending()[0].request, Result(1));
}

TEST_F(ResultCourierTest, AnAcknowledgementThatTheDiskRefusesBringsNothingBackNow) {
  courier_->Accept(Result(1));
  courier_->Accept(Result(2));
  coordinator_.OnFinish([](const FakeCoordinator::Finish& finish) {
    return finish.request.lease.trial.number.value == 2 ? absl::UnavailableError("away")
                                                        : absl::OkStatus();
  });
  {
    const FullDisk full;
    EXPECT_FALSE(courier_->DeliverAll().ok());
  }
  coordinator_.OnFinish(nullptr);
  EXPECT_TRUE(courier_->DeliverAll().ok());
  EXPECT_THAT(Stored(), ElementsAre(1, 2));
  EXPECT_THAT(Open().pending(), IsEmpty()) << "an empty outbox needs no room";
}

// ---- Large results ----

TEST_F(ResultCourierTest, ALargeResultGoesInParts) {
  constexpr int64_t kCount = 60'000;
  FinishRequest large = Result(1);
  for (int64_t step = 0; step < kCount; ++step) {
    large.measurements.push_back({.step = step, .metrics = {{std::string(400, 'm'), 0.25}}});
  }
  courier_->Accept(large);
  courier_->Accept(Result(2));
  EXPECT_TRUE(courier_->DeliverAll().ok());
  EXPECT_THAT(Stored(), ElementsAre(1, 2));
  int64_t next = 0;
  const auto take = [&next](const std::vector<Measurement>& part) {
    size_t bytes = 0;
    for (const Measurement& measurement : part) {
      bytes += measurement.metrics.begin()->first.size();
      EXPECT_EQ(measurement.step, next++);
    }
    EXPECT_LE(bytes, size_t{4} << 20) << "of 16 MiB that the server takes";
  };
  for (const AttemptReport& report : coordinator_.reports()) {
    EXPECT_TRUE(report.of_result);
    take(report.measurements);
  }
  take(coordinator_.results()[0].measurements);
  EXPECT_EQ(next, kCount);
}

TEST_F(ResultCourierTest, PartsThatWereToldAreNotToldAgainAndBadOnesAreLeftOut) {
  FinishRequest large = Result(1);
  for (int64_t step = 0; step < 30'000; ++step) large.measurements.push_back({.step = step});
  courier_->Accept(large);
  coordinator_.OnFinish(
      [](const FakeCoordinator::Finish&) { return absl::UnavailableError("away"); });
  EXPECT_FALSE(courier_->DeliverAll().ok());
  EXPECT_THAT(coordinator_.reports(), SizeIs(2));
  EXPECT_FALSE(courier_->DeliverAll().ok());
  EXPECT_THAT(coordinator_.reports(), SizeIs(2));

  large.lease.trial.number.value = 2;
  courier_->Accept(large);
  coordinator_.OnFinish(nullptr);
  coordinator_.SetReportStatus(absl::InvalidArgumentError("measurement: expected a step >= 0"));
  EXPECT_TRUE(courier_->DeliverAll().ok());
  EXPECT_THAT(Stored(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace hpo::agent
