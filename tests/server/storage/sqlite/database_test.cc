#include "server/storage/sqlite/database.h"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>

#include "absl/strings/match.h"
#include "common/files/sha256.h"
#include "gmock/gmock.h"
#include "server/storage/sqlite/database_lock.h"
#include "server/storage/sqlite/migrations.h"
#include "server/storage/store.h"
#include "tests/fakes/temporary_database.h"
#include "tests/server/storage/faulty_vfs.h"

namespace hpo::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Database::Open(file_.path(), Database::Access::kReadWrite);
    ASSERT_TRUE(opened.ok()) << opened.status();
    database_ = *std::move(opened);
    ASSERT_TRUE(database_->Execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a, b, c, d)").ok());
  }

  int64_t Count() {
    Statement row = database_->Prepare("SELECT COUNT(*) FROM t");
    EXPECT_TRUE(row.Next().value());
    return row.Int(0);
  }

  TemporaryDatabase file_;
  std::unique_ptr<Database> database_;
};

TEST_F(DatabaseTest, ValuesComeBackAsTheyWere) {
  const absl::Time time = absl::FromUnixMicros(1'700'000'000'123'456);
  const std::string text("a\0b\xc3\xa9", 5);
  ASSERT_TRUE(database_->Prepare("INSERT INTO t VALUES (?1, ?2, ?3, ?4, ?5)")
                  .Bind(std::numeric_limits<int64_t>::min(), 0.1, text, time, GiB(80))
                  .Run()
                  .ok());
  Statement row = database_->Prepare("SELECT * FROM t");
  ASSERT_TRUE(row.Next().value());
  EXPECT_EQ(row.Int(0), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(row.Real(1), 0.1);
  EXPECT_EQ(row.Text(2), text);
  EXPECT_EQ(row.Time(3), time);
  EXPECT_EQ(row.Size(4), GiB(80));
  EXPECT_FALSE(row.Next().value());
}

TEST_F(DatabaseTest, AbsenceIsNullAndAnEmptyTextIsNot) {
  ASSERT_TRUE(database_->Prepare("INSERT INTO t VALUES (1, ?1, ?2, ?3, ?4)")
                  .Bind(std::optional<int64_t>(), absl::InfinitePast(), absl::string_view(), true)
                  .Run()
                  .ok());
  Statement row = database_->Prepare("SELECT * FROM t");
  ASSERT_TRUE(row.Next().value());
  EXPECT_TRUE(row.IsNull(1));
  EXPECT_EQ(row.Time(2), absl::InfinitePast());
  EXPECT_FALSE(row.IsNull(3));
  EXPECT_TRUE(row.Bool(4));
}

TEST_F(DatabaseTest, OneTextMayRunTwiceAtOnce) {
  ASSERT_TRUE(database_->Execute("INSERT INTO t (k) VALUES (1), (2)").ok());
  Statement outer = database_->Prepare("SELECT k FROM t ORDER BY k");
  ASSERT_TRUE(outer.Next().value());
  {
    Statement inner = database_->Prepare("SELECT k FROM t ORDER BY k");
    ASSERT_TRUE(inner.Next().value());
    EXPECT_EQ(inner.Int(0), 1);
  }
  ASSERT_TRUE(outer.Next().value());
  EXPECT_EQ(outer.Int(0), 2);
}

TEST_F(DatabaseTest, ErrorsHaveTheirCodes) {
  ASSERT_TRUE(database_->Execute("INSERT INTO t (k) VALUES (1)").ok());
  ASSERT_TRUE(database_->Execute("CREATE TABLE child (k REFERENCES t (k), n NOT NULL)").ok());
  const std::pair<const char*, absl::StatusCode> cases[] = {
      {"INSERT INTO t (k) VALUES (1)", absl::StatusCode::kAlreadyExists},
      {"INSERT INTO child VALUES (9, 1)", absl::StatusCode::kFailedPrecondition},
      {"INSERT INTO child VALUES (1, NULL)", absl::StatusCode::kFailedPrecondition},
      {"SELECT nonsense", absl::StatusCode::kInternal}};
  for (const auto& [sql, code] : cases) {
    const absl::Status status = database_->Prepare(sql).Run();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(status.message(), HasSubstr(file_.path()));
  }
  EXPECT_EQ(database_->Prepare("SELECT 1").Bind(int64_t{1}).Next().status().code(),
            absl::StatusCode::kInternal)
      << "a parameter that is not there";
}

TEST_F(DatabaseTest, ATransactionThatIsNotCommittedLeavesNothing) {
  {
    auto transaction = Transaction::Begin(*database_);
    ASSERT_TRUE(transaction.ok());
    ASSERT_TRUE(database_->Execute("INSERT INTO t (k) VALUES (1)").ok());
  }
  EXPECT_EQ(Count(), 0);
  auto transaction = Transaction::Begin(*database_);
  ASSERT_TRUE(transaction.ok());
  ASSERT_TRUE(database_->Execute("INSERT INTO t (k) VALUES (1)").ok());
  ASSERT_TRUE(transaction->Commit().ok());
  EXPECT_EQ(Count(), 1);
}

TEST_F(DatabaseTest, CommitsAreFullySynchronous) {
  const std::pair<const char*, std::string> cases[] = {
      {"PRAGMA synchronous", "2"}, {"PRAGMA journal_mode", "wal"}, {"PRAGMA foreign_keys", "1"}};
  for (const auto& [pragma, expected] : cases) {
    Statement row = database_->Prepare(pragma);
    ASSERT_TRUE(row.Next().value());
    EXPECT_EQ(row.Text(0), expected) << pragma;
  }
}

TEST(DatabaseOpen, RefusesWhatIsNoDatabase) {
  TemporaryDatabase file;
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Database::Open(file.File("absent/hpo.db"), Database::Access::kReadWrite).status()));
  EXPECT_TRUE(
      absl::IsUnavailable(Database::Open(file.path(), Database::Access::kReadOnly).status()))
      << "a running server's reader: it may work again";
  std::ofstream(file.path()) << std::string(4096, 'x');
  EXPECT_TRUE(absl::IsDataLoss(Database::Open(file.path(), Database::Access::kReadWrite).status()));
}

// SQLite gives the code of a malformed database for both.
TEST(DatabaseOpen, ADiskThatFailsToReadHasLostNothing) {
  FaultyVfs faults;
  TemporaryDatabase file;
  auto writer = Database::Open(file.path(), Database::Access::kReadWrite);
  auto reader = Database::Open(file.path(), Database::Access::kReadOnly);
  ASSERT_TRUE(writer.ok() && reader.ok());
  ASSERT_TRUE((*writer)->Execute("CREATE TABLE t (k); INSERT INTO t VALUES (1)").ok());
  Statement read = (*reader)->Prepare("SELECT k FROM t");
  ASSERT_TRUE((*writer)->Execute("INSERT INTO t VALUES (2)").ok());

  faults.Fail({.operation = FileOperation::kRead, .code = SQLITE_IOERR_CORRUPTFS});
  EXPECT_TRUE(absl::IsUnavailable(read.Next().status())) << read.Next().status();
  EXPECT_EQ(faults.NumFailed(), 1);
  faults.Heal();
  Statement again = (*reader)->Prepare("SELECT COUNT(*) FROM t");
  ASSERT_TRUE(again.Next().value());
  EXPECT_EQ(again.Int(0), 2);
}

// SQLite's own file system over a disk that fails to read, as long as one of these lives.
class FailingReads {
 public:
  FailingReads() { Set(reinterpret_cast<sqlite3_syscall_ptr>(&Fail)); }
  FailingReads(const FailingReads&) = delete;
  ~FailingReads() { Set(nullptr); }

 private:
  static ssize_t Fail(int, void*, size_t, off64_t) {
    errno = EIO;
    return -1;
  }
  static void Set(sqlite3_syscall_ptr call) {
    sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
    for (const char* name : {"pread", "pread64"}) vfs->xSetSystemCall(vfs, name, call);
  }
};

TEST(DatabaseOpen, WhatADiskFailedAtIsNotTakenForLaterDamage) {
  TemporaryDatabase file;
  auto database = Database::Open(file.path(), Database::Access::kReadWrite);
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)
                  ->Execute("CREATE TABLE t (k); INSERT INTO t VALUES (zeroblob(100000));"
                            "PRAGMA wal_checkpoint(TRUNCATE)")
                  .ok());
  const auto read = [&] {
    EXPECT_TRUE((*database)->Execute("PRAGMA shrink_memory").ok());
    return (*database)->Prepare("SELECT * FROM t").Next().status();
  };
  {
    const FailingReads disk;
    EXPECT_TRUE(absl::IsUnavailable(read())) << read();
    EXPECT_TRUE(absl::IsUnavailable(read())) << "as long as it lasts";
  }
  EXPECT_TRUE(read().ok()) << read();

  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(file.path()));
  std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(4096) << std::string(static_cast<size_t>(size) - 4096, 'x') << std::flush;
  EXPECT_TRUE(absl::IsDataLoss(read())) << read();
}

TEST(DatabaseLockTest, NamesTheProcessThatHoldsTheFile) {
  TemporaryDatabase file;
  {
    const auto lock = DatabaseLock::Acquire(file.path());
    ASSERT_TRUE(lock.ok()) << lock.status();
    const auto second = DatabaseLock::Acquire(file.path());
    ASSERT_TRUE(absl::IsFailedPrecondition(second.status()));
    EXPECT_THAT(second.status().message(), HasSubstr(absl::StrCat("is in use by pid ", getpid())));
  }
  EXPECT_TRUE(DatabaseLock::Acquire(file.path()).ok());
}

TEST(DatabaseLockTest, ADeadProcessHoldsNothing) {
  TemporaryDatabase file;
  const pid_t child = fork();
  if (child == 0) {
    const auto lock = DatabaseLock::Acquire(file.path());
    // No destructor runs: as after kill -9.
    _exit(lock.ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(DatabaseLock::Acquire(file.path()).ok());
}

constexpr Migration kMigrations[] = {{1, "one", "CREATE TABLE one (x)"},
                                     {2, "two", "ALTER TABLE one ADD COLUMN y"},
                                     {3, "broken", "CREATE TABLE three (x); SELECT nonsense"}};

TEST(Migrations, AreAppliedOnceEachAndBackedUp) {
  TemporaryDatabase file;
  auto database = Database::Open(file.path(), Database::Access::kReadWrite);
  ASSERT_TRUE(database.ok());
  const std::span<const Migration> all(kMigrations);
  ASSERT_TRUE(Migrate(**database, all.first(1)).ok());
  ASSERT_TRUE((*database)->Execute("INSERT INTO one VALUES (7)").ok());
  ASSERT_TRUE(Migrate(**database, all.first(2)).ok());
  ASSERT_TRUE(Migrate(**database, all.first(2)).ok());
  EXPECT_TRUE((*database)->Prepare("SELECT x, y FROM one").Run().ok());

  auto backup = Database::Open(file.path() + ".v1.bak", Database::Access::kReadOnly);
  ASSERT_TRUE(backup.ok()) << backup.status();
  Statement row = (*backup)->Prepare("SELECT * FROM one");
  ASSERT_TRUE(row.Next().value());
  EXPECT_EQ(row.Int(0), 7);
  EXPECT_FALSE((*backup)->Prepare("SELECT y FROM one").Run().ok());
}

TEST(Migrations, TokensOfEarlierVersionsAreHashed) {
  TemporaryDatabase file;
  auto database = Database::Open(file.path(), Database::Access::kReadWrite);
  ASSERT_TRUE(database.ok());
  const std::span<const Migration> all = EmbeddedMigrations();
  const auto hashing = std::find_if(all.begin(), all.end(), [](const Migration& migration) {
    return absl::StrContains(migration.name, "token_hashes");
  });
  ASSERT_NE(hashing, all.end());
  ASSERT_TRUE(Migrate(**database, all.first(static_cast<size_t>(hashing - all.begin()))).ok());
  ASSERT_TRUE((*database)
                  ->Execute("PRAGMA foreign_keys=OFF; INSERT INTO attempt (study_id, number, "
                            "attempt, state, worker, instance_key, token, capacity, usable, "
                            "predicted, plan, end_note, started) VALUES (1, 0, 1, 'LEASED', 'w', "
                            "'k', 'clear', 8, 7, 0, '{}', '', 0); INSERT INTO idempotency VALUES "
                            "('id', 'm', 0, '', 0)")
                  .ok());
  ASSERT_TRUE(Migrate(**database, all).ok());
  Statement row = (*database)->Prepare(
      "SELECT token, request_id, length(token_secret) FROM attempt, idempotency, server");
  ASSERT_TRUE(row.Next().value());
  EXPECT_EQ(row.Text(0), Sha256Hex("clear"));
  EXPECT_EQ(row.Text(1), Sha256Hex("id"));
  EXPECT_EQ(row.Int(2), 32);
}

TEST(Store, IsItsOwnersAlone) {
  TemporaryDatabase file;
  std::ofstream(file.path()).close();
  std::filesystem::permissions(file.path(), std::filesystem::perms::all);
  const auto store = Store::Open(file.path());
  ASSERT_TRUE(store.ok()) << store.status();
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    SCOPED_TRACE(suffix);
    EXPECT_EQ(std::filesystem::status(file.path() + suffix).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
}

TEST(Migrations, AFailedOneLeavesTheVersionBefore) {
  TemporaryDatabase file;
  auto database = Database::Open(file.path(), Database::Access::kReadWrite);
  ASSERT_TRUE(database.ok());
  const absl::Status failed = Migrate(**database, kMigrations);
  EXPECT_THAT(failed.message(), HasSubstr("migration 3 broken"));
  EXPECT_FALSE((*database)->Prepare("SELECT * FROM three").Run().ok());
  EXPECT_TRUE(Migrate(**database, std::span(kMigrations).first(2)).ok());
}

TEST(Migrations, ANewerDatabaseIsRefusedInOneLine) {
  TemporaryDatabase file;
  const int64_t ours = EmbeddedMigrations().back().version;
  {
    ASSERT_TRUE(Store::Open(file.path()).ok());
    auto database = Database::Open(file.path(), Database::Access::kReadWrite);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)->Execute(absl::StrCat("PRAGMA user_version=", ours + 1)).ok());
  }
  const absl::Status refused = Store::Open(file.path()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(refused.message(),
              AllOf(HasSubstr(file.path()), HasSubstr(absl::StrCat("version ", ours + 1)),
                    HasSubstr(absl::StrCat("up to ", ours)), HasSubstr("newer hpo-server")));
  EXPECT_THAT(refused.message(), ::testing::Not(HasSubstr("\n")));
}

TEST(Migrations, AnotherProgramsDatabaseIsLeftAlone) {
  TemporaryDatabase file;
  auto database = Database::Open(file.path(), Database::Access::kReadWrite);
  ASSERT_TRUE(database.ok());
  ASSERT_TRUE((*database)->Execute("CREATE TABLE theirs (x)").ok());
  const absl::Status refused = Migrate(**database, EmbeddedMigrations());
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_FALSE((*database)->Prepare("SELECT * FROM study").Run().ok());
}

TEST(Migrations, TheEmbeddedOnesHaveNoGap) {
  int64_t expected = 1;
  for (const Migration& migration : EmbeddedMigrations()) EXPECT_EQ(migration.version, expected++);
  EXPECT_GT(expected, 1);
}

// A client chooses what some texts look like; 30 of its lists once took a gigabyte.
TEST_F(DatabaseTest, FewPreparedStatementsAreKept) {
  const int64_t before = sqlite3_memory_used();
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(database_->Prepare("SELECT a FROM t WHERE k = " + std::to_string(i)).Run().ok());
  }
  EXPECT_LT(sqlite3_memory_used() - before, 2 << 20);
}

}  // namespace
}  // namespace hpo::server
