// A whole server on a disk that fails, and `hpo admin`.
#include <sqlite3.h>

#include <filesystem>
#include <sstream>
#include <thread>

#include "absl/strings/str_split.h"
#include "common/files/sha256.h"
#include "gmock/gmock.h"
#include "server/storage/sqlite/database.h"
#include "server/storage/sqlite/restore_database.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/cli/run_program.h"
#include "tests/server/coordinator_fixture.h"
#include "tests/server/storage/faulty_vfs.h"

namespace hpo::server {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const FileFault kFullDisk = {.code = SQLITE_FULL, .first = 1, .count = kUntilHealed, .file = {}};

class AdminTest : public CoordinatorFixture {
 protected:
  cli::ProgramResult Run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--server", coordinator_->address()});
    return cli::RunProgram(std::move(words));
  }

  // Until the ticking thread has found out that the disk works.
  void WaitUntilWell() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!coordinator_->admin().GetServer().trouble.empty()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "no recovery";
      std::this_thread::yield();
    }
  }

  grpc::StatusCode TryAcquire(const std::string& session) {
    Call call;
    v1::AcquireTrialRequest request;
    request.set_session(session);
    request.set_capacity_bytes(int64_t{8} << 30);
    v1::AcquireTrialResponse response;
    return workers_->AcquireTrial(&call, request, &response).error_code();
  }

  // Before the server's connections open.
  FaultyVfs faults_;
};

TEST_F(AdminTest, AFullDiskIsToldRefusesAndPasses) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  const std::string session = Register();
  const v1::Assignment held = Acquire(session, "").assignment();
  EXPECT_THAT(Run({"status"}).out, Not(HasSubstr("trouble")));

  faults_.Fail(kFullDisk);
  EXPECT_EQ(TryAcquire(session), grpc::StatusCode::UNAVAILABLE);
  v1::Outcome outcome;
  (*outcome.mutable_completed()->mutable_metrics())["score"] = 0.5;
  {
    Call call;
    v1::FinishTrialResponse response;
    EXPECT_EQ(workers_->FinishTrial(&call, Finishing(held, outcome), &response).error_code(),
              grpc::StatusCode::UNAVAILABLE);
  }
  const cli::ProgramResult told = Run({"status"});
  EXPECT_EQ(told.status, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("trouble     nothing was stored"));
  EXPECT_THAT(told.out, HasSubstr("1 running"));
  EXPECT_THAT(cli::ParsedOutput(Run({"status", "--output", "json"}))["trouble"].get<std::string>(),
              HasSubstr("full"));

  faults_.Heal();
  WaitUntilWell();
  EXPECT_THAT(Run({"status"}).out, Not(HasSubstr("trouble")));
  EXPECT_TRUE(Complete(held, 0.5).stored());
  EXPECT_EQ(Get().counts().completed(), 1);
}

// Whatever is written to the log as long as this lives, line by line.
class LogLines {
 public:
  LogLines() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  LogLines(const LogLines&) = delete;
  ~LogLines() { spdlog::set_default_logger(before_); }

  // Once nobody writes to it any more.
  std::vector<std::string> lines() const { return absl::StrSplit(text_.str(), '\n'); }

 private:
  std::ostringstream text_;
  const std::shared_ptr<spdlog::logger> before_;
};

TEST_F(AdminTest, AFullDiskIsSaidByOneLine) {
  CoordinatorOptions options = Options();
  options.scheduler.tick_interval = absl::Milliseconds(1);
  options.scheduler.lease.ttl = absl::Milliseconds(10);
  coordinator_.reset();
  LogLines log;
  Start(options);
  ASSERT_TRUE(Create(kPlainStudy).ok());
  const std::string session = Register();
  // Each tick has something to store: that this one's lease is over.
  Acquire(session, "");
  faults_.Fail(kFullDisk);
  EXPECT_EQ(TryAcquire(session), grpc::StatusCode::UNAVAILABLE);
  coordinator_->LookAtHealth();
  while (faults_.NumFailed() < 50) std::this_thread::yield();
  faults_.Heal();
  coordinator_.reset();
  EXPECT_THAT(log.lines(), Contains(HasSubstr("full")).Times(1));
}

// As kill -9 and a broken disk leave it.
TEST_F(AdminTest, ADamagedDatabaseIsToldAtTheStart) {
  coordinator_.reset();
  {
    auto database = Database::Open(Options().database, Database::Access::kReadWrite);
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)
                    ->Execute("UPDATE server SET ended = 0; PRAGMA writable_schema=ON;"
                              "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM "
                              "sqlite_master WHERE name = 'study') WHERE name = 'event'")
                    .ok());
  }
  LogLines log;
  Start();
  const std::string told = Run({"status"}).out;
  coordinator_.reset();
  EXPECT_THAT(log.lines(), Contains(HasSubstr("the database is damaged: ")));
  EXPECT_THAT(told, HasSubstr("the database is damaged; stop the server and run: hpo admin"));
}

TEST_F(AdminTest, AStartOnAFullDiskWaitsWhereItMay) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  coordinator_.reset();
  faults_.Fail(kFullDisk);
  EXPECT_TRUE(absl::IsUnavailable(Coordinator::Start(Options(), clock_).status()));
  CoordinatorOptions options = Options();
  int num_asked = 0;
  options.try_again = [&](const absl::Status& met) {
    EXPECT_THAT(met.message(), HasSubstr("full"));
    if (++num_asked == 3) faults_.Heal();
    return true;
  };
  absl::StatusOr<std::unique_ptr<Coordinator>> started = Coordinator::Start(options, clock_);
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(num_asked, 3);
  EXPECT_EQ((*started)->studies().queries().ListStudies()->size(), 1u);
}

TEST_F(AdminTest, ABackupOfARunningServerIsRestored) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  const std::string session = Register();
  Complete(Acquire(session, "").assignment(), 0.5);
  const std::string backup = folder_ / "backup.db";
  const cli::ProgramResult made = Run({"admin", "backup", backup});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("wrote " + backup));
  EXPECT_EQ(std::filesystem::status(backup).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Complete(Acquire(session, "").assignment(), 0.6);
  EXPECT_EQ(Get().counts().completed(), 2);

  coordinator_.reset();
  const auto restored = RestoreDatabase(backup, Options().database);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_THAT(restored->kept_as, Not(IsEmpty()));
  Start();
  EXPECT_EQ(Get().counts().completed(), 1);
  EXPECT_THAT(Run({"status"}).out, Not(HasSubstr("damage")));
}

TEST_F(AdminTest, ABackupWithoutRoomSaysSoAndHarmsNothing) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  const std::string backup = folder_ / "backup.db";
  faults_.Fail({.code = SQLITE_FULL, .count = kUntilHealed, .file = ".copy"});
  const cli::ProgramResult refused = Run({"admin", "backup", backup});
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, HasSubstr("full"));
  EXPECT_FALSE(std::filesystem::exists(backup));
  faults_.Heal();
  EXPECT_THAT(coordinator_->admin().GetServer().trouble, IsEmpty());
  EXPECT_NE(Run({"admin", "backup", folder_ / "absent" / "backup.db"}).status, 0);
  EXPECT_EQ(Run({"admin", "backup", backup}).status, 0);
}

}  // namespace
}  // namespace hpo::server
