// Disks that fail, and rows that memory does not know: afterwards memory equals a rebuild from
// rows.
#include <sqlite3.h>

#include "gmock/gmock.h"
#include "tests/chaos/simulation/study_image.h"
#include "tests/server/scheduler/scheduler_fixture.h"
#include "tests/server/storage/faulty_vfs.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class StorageFaultTest : public SchedulerFixture {
 protected:
  void TearDown() override { Stop(); }

  // Another program at the database file.
  void RunSql(const std::string& sql) {
    auto database = Database::Open(database_.path(), Database::Access::kReadWrite);
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status done = (*database)->Execute(sql);
    ASSERT_TRUE(done.ok()) << done;
  }

  // Memory against that of a server that starts on a copy of the rows.
  absl::Status CompareWithRebuilt() {
    TemporaryDatabase copy;
    RunSql(absl::StrCat("VACUUM INTO '", copy.path(), "'"));
    HPO_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, Store::Open(copy.path()));
    SchedulerOptions options;
    options.tick_interval = absl::ZeroDuration();
    HPO_ASSIGN_OR_RETURN(const std::unique_ptr<TrialScheduler> fresh,
                         TrialScheduler::Create(std::move(store), clock_, options));
    HPO_ASSIGN_OR_RETURN(const StudyImage memory, TakeImage(*scheduler_));
    HPO_ASSIGN_OR_RETURN(const StudyImage rebuilt, TakeImage(*fresh));
    return CompareImages(memory, rebuilt);
  }

  // One trial as a worker that tries again runs it. Whether the server took everything.
  bool RunTrial(const std::string& session, int64_t step) {
    const auto acquired = scheduler_->dispatcher().AcquireTrial(
        session, absl::StrCat("ask ", step), absl::ZeroDuration(), GiB(8), nullptr);
    if (!acquired.ok()) return Refused(acquired.status());
    if (!acquired->assignment) return false;
    const LeaseRef lease = acquired->assignment->lease;
    const Measurement seen{.step = 1, .epoch = 1, .metrics = {{"score", 0.9}}};
    const auto reported =
        scheduler_->results().ReportMeasurements({.lease = lease, .measurements = {seen}});
    if (!reported.ok()) Refused(reported.status());
    for (int attempt = 0; attempt < 3; ++attempt) {
      const auto finished = scheduler_->results().FinishTrial(
          absl::StrCat("tell ", step),
          FinishRequest{.lease = lease,
                        .outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""},
                        .memory = {},
                        .final_plan = {},
                        .measurements = {}});
      if (finished.ok()) return true;
      Refused(finished.status());
    }
    return false;
  }

  bool Refused(const absl::Status& status) {
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    return false;
  }

  // Before the scheduler's connections open.
  FaultyVfs faults_;
};

TEST_F(StorageFaultTest, AfterAnyFailedOperationMemoryEqualsTheRows) {
  AddStudy(PlainStudy("plain", 1000));
  const std::string session = Register(MakeWorker("a"));
  const std::pair<FileOperation, int> faults[] = {{FileOperation::kWrite, SQLITE_FULL},
                                                  {FileOperation::kSync, SQLITE_IOERR_FSYNC},
                                                  {FileOperation::kRead, SQLITE_IOERR_READ}};
  int64_t step = 0;
  for (const auto& [operation, code] : faults) {
    int64_t num_failed = 0;
    for (int64_t k = 1; k <= 10; ++k) {
      SCOPED_TRACE(absl::StrCat("operation ", static_cast<int>(operation), ", k ", k));
      faults_.Fail({.operation = operation, .code = code, .first = k});
      RunTrial(session, ++step);
      num_failed += faults_.NumFailed();
      faults_.Heal();
      ASSERT_TRUE(scheduler_->sweeper().Tick().ok());
      ASSERT_TRUE(RunTrial(session, ++step)) << "it goes on by itself";
      ASSERT_EQ(CompareWithRebuilt(), absl::OkStatus());
    }
    EXPECT_TRUE(operation == FileOperation::kRead || num_failed > 0);
  }
}

TEST_F(StorageFaultTest, AStudySaysThatNothingCanBeStored) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  ASSERT_TRUE(RunTrial(session, 1));
  faults_.Fail({.operation = FileOperation::kWrite, .code = SQLITE_FULL, .count = 1000000});
  for (int64_t step : {2, 3}) {
    EXPECT_FALSE(RunTrial(session, step));
    EXPECT_THAT(Status("plain").waiting_for,
                MatchesRegex("the server cannot use its database, and tries again: nothing was "
                             "stored: database .*: database or disk is full"));
  }
  faults_.Heal();
  ASSERT_TRUE(RunTrial(session, 4));
  EXPECT_EQ(Status("plain").waiting_for, "");
}

// What a commit leaves that reported an error although its rows arrived.
TEST_F(StorageFaultTest, RowsThatAreAheadOfMemoryAreReadAgain) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef running = MustAcquire(session).lease;
  RunSql(
      "INSERT INTO trial (study_id, number, state, params, demonstration, admission, "
      "forced_micro_batch, min_capacity, current_attempt, result_attempt, preemptions, "
      "worker_losses, transient_failures, device_ooms, host_ooms, oom_met, created, last_sequence) "
      "VALUES (1, 1, 'QUEUED', '{\"train.batch_size\":7}', 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, "
      "2);"
      "UPDATE study SET next_number = 2, num_budgeted = 2, last_sequence = 2;"
      "INSERT INTO event (study_id, sequence, number, kind, time) VALUES (1, 2, 1, 'queued', 1);"
      "UPDATE server SET batch = batch + 1");
  const auto refused = scheduler_->dispatcher()
                           .AcquireTrial(session, "", absl::ZeroDuration(), GiB(8), nullptr)
                           .status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("reads it again"));

  ASSERT_TRUE(scheduler_->sweeper().Tick().ok());
  EXPECT_EQ(CompareWithRebuilt(), absl::OkStatus());
  EXPECT_EQ(Beat(running), Directive::kContinue) << "leases stay";
  EXPECT_EQ(MustAcquire(session).lease.trial.number, TrialNumber{1}) << "the one that was queued";
  EXPECT_EQ(MustAcquire(session).lease.trial.number, TrialNumber{2});
  EXPECT_TRUE(Complete(running, 0.5).stored);
  EXPECT_EQ(CompareWithRebuilt(), absl::OkStatus());
}

TEST_F(StorageFaultTest, AServerThatAnotherHasFollowedWritesNothing) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  RunSql("UPDATE server SET epoch = epoch + 1, batch = batch + 1");
  for (int i = 0; i < 2; ++i) {
    const auto refused = scheduler_->dispatcher()
                             .AcquireTrial(session, "", absl::ZeroDuration(), GiB(8), nullptr)
                             .status();
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_THAT(refused.message(), HasSubstr("another that started later"));
    scheduler_->sweeper().Tick().IgnoreError();
  }
  EXPECT_EQ(Status("plain").counts, TrialCounts{});
}

}  // namespace
}  // namespace hpo::server
