// Store: locks, readers, what it says of a failing disk, copies and restored databases.
#include "server/storage/store.h"

#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "gmock/gmock.h"
#include "server/storage/sqlite/migrations.h"
#include "server/storage/sqlite/restore_database.h"
#include "tests/fakes/temporary_database.h"
#include "tests/server/storage/faulty_vfs.h"

namespace hpo::server {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::unique_ptr<Store> MustOpen(const std::string& path) {
  auto store = Store::Open(path);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

absl::Status Insert(Store& store, const std::string& name) {
  return store.Write([&](Database& database) {
    return database
        .Prepare("INSERT INTO study (name, spec, stated, created) VALUES (?1, '{}', '{}', 0)")
        .Bind(name)
        .Run();
  });
}

int64_t NumStudies(const Store& store) {
  int64_t count = -1;
  const absl::Status read = store.Read([&](Database& database) -> absl::Status {
    Statement row = database.Prepare("SELECT COUNT(*) FROM study");
    HPO_RETURN_IF_ERROR(row.Next().status());
    count = row.Int(0);
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  return count;
}

// Whether another process may open the database under this name.
bool AnotherProcessOpens(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) _exit(DatabaseLock::Acquire(path).ok() ? 0 : 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(StoreLock, HoldsWhateverTheFileIsCalled) {
  TemporaryDatabase file;
  auto store = MustOpen(file.path());
  fs::create_symlink(file.path(), file.File("link.db"));
  fs::create_hard_link(file.path(), file.File("hard.db"));
  fs::remove(file.path() + ".lock");
  for (const std::string& name :
       {file.path(), file.File("./hpo.db"), file.File("link.db"), file.File("hard.db")}) {
    EXPECT_FALSE(AnotherProcessOpens(name)) << name;
  }
  EXPECT_TRUE(Insert(*store, "still ours").ok());
  store.reset();
  EXPECT_TRUE(AnotherProcessOpens(file.File("link.db")));
}

TEST(StoreLock, ADatabaseThatIsTakenAwayIsNotWritten) {
  TemporaryDatabase file;
  auto store = MustOpen(file.path());
  fs::rename(file.path(), file.File("moved.db"));
  const absl::Status removed = Insert(*store, "lost");
  EXPECT_TRUE(absl::IsUnavailable(removed)) << removed;
  EXPECT_THAT(removed.message(), HasSubstr("was removed"));
  std::ofstream(file.path()) << "another";
  EXPECT_THAT(Insert(*store, "lost").message(), HasSubstr("was replaced"));
  EXPECT_THAT(store->trouble(), HasSubstr("was replaced"));
  fs::rename(file.File("moved.db"), file.path());
  EXPECT_TRUE(Insert(*store, "kept").ok());
  EXPECT_THAT(store->trouble(), IsEmpty());
}

TEST(StoreReaders, NeedNoDescriptorOnceTheStoreIsOpen) {
  TemporaryDatabase file;
  auto store = MustOpen(file.path());
  ASSERT_TRUE(Insert(*store, "a").ok());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;  // all taken: whatever opens a file fails
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  std::vector<absl::Status> read(6);
  absl::Mutex mutex;
  int inside = 0;
  std::vector<std::thread> threads;
  for (absl::Status& status : read) {
    threads.emplace_back([&] {
      status = store->Read([&](Database& database) -> absl::Status {
        {
          absl::MutexLock lock(&mutex);
          ++inside;
          const auto all = [&inside] { return inside == 6; };
          mutex.Await(absl::Condition(&all));
        }
        return database.Prepare("SELECT COUNT(*) FROM study").Next().status();
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  const absl::Status written = Insert(*store, "b");
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const absl::Status& status : read) EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(written.ok()) << written;
}

TEST(StoreTrouble, IsToldWhileItLastsAndIsOverByItself) {
  FaultyVfs faults;
  TemporaryDatabase file;
  auto store = MustOpen(file.path());
  EXPECT_THAT(store->trouble(), IsEmpty());
  faults.Fail({.code = SQLITE_FULL, .count = kUntilHealed, .file = "-wal"});
  EXPECT_TRUE(absl::IsUnavailable(Insert(*store, "a")));
  EXPECT_THAT(store->trouble(), HasSubstr("full"));
  store->Probe();
  EXPECT_THAT(store->trouble(), HasSubstr("full")) << "the disk still is";
  EXPECT_EQ(NumStudies(*store), 0) << "reads work";
  faults.Heal();
  store->Probe();
  EXPECT_THAT(store->trouble(), IsEmpty());
  EXPECT_TRUE(Insert(*store, "a").ok());
}

TEST(StoreTrouble, AFullDiskAtTheStartMayPass) {
  TemporaryDatabase file;
  ASSERT_NE(MustOpen(file.path()), nullptr);
  FaultyVfs faults;
  faults.Fail({.code = SQLITE_FULL, .count = kUntilHealed});
  const absl::Status refused = Store::Open(file.path()).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  faults.Heal();
  EXPECT_NE(MustOpen(file.path()), nullptr);
}

TEST(StoreIntegrity, IsLookedAtAfterAnEndThatWasNotInOrder) {
  TemporaryDatabase file;
  TemporaryDatabase killed;
  {
    auto store = MustOpen(file.path());
    ASSERT_TRUE(Insert(*store, "a").ok());
    EXPECT_THAT(store->damage(), IsEmpty());
    // As kill -9 leaves it, with an index that lacks its row.
    ASSERT_TRUE(store
                    ->WithCopy([&](const std::string& copy) {
                      fs::copy_file(copy, killed.path());
                      return absl::OkStatus();
                    })
                    .ok());
    auto database = Database::Open(killed.path(), Database::Access::kReadWrite);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE((*database)
                    ->Execute("PRAGMA writable_schema=ON;"
                              "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM "
                              "sqlite_master WHERE name = 'study') WHERE name = 'event'")
                    .ok());
  }
  EXPECT_THAT(MustOpen(file.path())->damage(), IsEmpty()) << "ended in order: not looked at";
  EXPECT_THAT(MustOpen(killed.path())->damage(), Not(IsEmpty()));
}

// Nobody is to restore an old backup because a disk failed for a moment.
TEST(StoreIntegrity, ADiskThatFailsToReadIsNoDamage) {
  TemporaryDatabase file;
  const std::string killed = file.File("killed.db");
  {
    auto store = MustOpen(file.path());
    const auto copy = [&](const std::string& made) {
      fs::copy_file(made, killed);
      return absl::OkStatus();
    };
    ASSERT_TRUE(store->WithCopy(copy).ok());
  }
  int64_t num_refused = 0;
  for (int64_t first = 1;; first += 3) {
    SCOPED_TRACE(first);
    const std::string path = file.File(absl::StrCat(first, ".db"));
    fs::copy_file(killed, path);
    FaultyVfs faults;
    faults.Fail({.operation = FileOperation::kRead, .code = SQLITE_IOERR_READ, .first = first});
    const auto store = Store::Open(path);
    if (store.ok()) {
      EXPECT_THAT((*store)->damage(), IsEmpty());
    } else {
      EXPECT_TRUE(absl::IsUnavailable(store.status())) << store.status();
      ++num_refused;
    }
    if (faults.NumFailed() == 0) break;
  }
  EXPECT_GT(num_refused, 3);
}

TEST(StoreCopy, IsOneStateAndGoneAfterwards) {
  TemporaryDatabase file;
  auto store = MustOpen(file.path());
  ASSERT_TRUE(Insert(*store, "a").ok());
  std::string path;
  const absl::Status copied = store->WithCopy([&](const std::string& copy) -> absl::Status {
    path = copy;
    EXPECT_TRUE(Insert(*store, "b").ok()) << "writes go on meanwhile";
    HPO_ASSIGN_OR_RETURN(const auto database, Database::Open(copy, Database::Access::kReadOnly));
    Statement row = database->Prepare("SELECT COUNT(*) FROM study");
    HPO_RETURN_IF_ERROR(row.Next().status());
    EXPECT_EQ(row.Int(0), 1);
    EXPECT_EQ(fs::status(copy).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    return absl::OkStatus();
  });
  EXPECT_TRUE(copied.ok()) << copied;
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(NumStudies(*store), 2);
}

class RestoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = MustOpen(file_.path());
    ASSERT_TRUE(Insert(*store, "a").ok());
    ASSERT_TRUE(store
                    ->WithCopy([&](const std::string& copy) {
                      fs::copy_file(copy, backup_);
                      return absl::OkStatus();
                    })
                    .ok());
    ASSERT_TRUE(Insert(*store, "after the backup").ok());
  }

  TemporaryDatabase file_;
  const std::string backup_ = file_.File("backup.db");
};

TEST_F(RestoreTest, BringsTheBackupAndKeepsWhatWasThere) {
  const auto restored = RestoreDatabase(backup_, file_.path());
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(NumStudies(*MustOpen(file_.path())), 1);
  EXPECT_EQ(NumStudies(*MustOpen(restored->kept_as)), 2);
  const auto again = RestoreDatabase(backup_, file_.path());
  ASSERT_TRUE(again.ok());
  EXPECT_NE(again->kept_as, restored->kept_as);
  const auto elsewhere = RestoreDatabase(backup_, file_.File("new.db"));
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_THAT(elsewhere->kept_as, IsEmpty());
  EXPECT_EQ(NumStudies(*MustOpen(file_.File("new.db"))), 1);
}

// The log of a server that was killed must not be taken for the restored file's.
TEST_F(RestoreTest, TakesTheOldLogAwayWithItsDatabase) {
  auto store = MustOpen(file_.path());
  ASSERT_TRUE(Insert(*store, "in the log").ok());
  fs::copy(file_.path(), file_.File("killed.db"));
  fs::copy(file_.path() + "-wal", file_.File("killed.db-wal"));
  const auto restored = RestoreDatabase(backup_, file_.File("killed.db"));
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(NumStudies(*MustOpen(file_.File("killed.db"))), 1);
  EXPECT_EQ(NumStudies(*MustOpen(restored->kept_as)), 3);
}

TEST_F(RestoreTest, RefusesWhatWouldLoseSomething) {
  auto store = MustOpen(file_.path());
  EXPECT_THAT(RestoreDatabase(backup_, file_.path()).status().message(),
              HasSubstr(absl::StrCat("in use by pid ", getpid())));
  store.reset();
  EXPECT_THAT(RestoreDatabase(file_.path(), file_.path()).status().message(),
              HasSubstr("the database"));
  EXPECT_TRUE(absl::IsNotFound(RestoreDatabase(file_.File("none"), file_.path()).status()));

  std::ofstream(file_.File("text")) << std::string(5000, 'x');
  EXPECT_TRUE(absl::IsDataLoss(RestoreDatabase(file_.File("text"), file_.path()).status()));
  {
    auto newer = Database::Open(backup_, Database::Access::kReadWrite);
    ASSERT_TRUE((*newer)->Execute("PRAGMA user_version=999").ok());
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(RestoreDatabase(backup_, file_.path()).status()));
  fs::resize_file(backup_, fs::file_size(backup_) / 2);
  EXPECT_FALSE(RestoreDatabase(backup_, file_.path()).ok());
  EXPECT_EQ(NumStudies(*MustOpen(file_.path())), 2) << "untouched";
}

}  // namespace
}  // namespace hpo::server
