// Disks that fail under the write queue: a batch is stored whole or not at all.
#include <sqlite3.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/storage/faulty_vfs.h"
#include "tests/server/storage/write_queue_fixture.h"

namespace hpo::server {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

class FaultyWriteQueueTest : public WriteQueueTest {
 protected:
  void TearDown() override { store_.reset(); }

  // A write whose pages do not fit in the cache, so that one of its statements writes to the disk,
  // which fails.
  WriteQueue::Work Spill(int64_t key, int code) {
    return [this, key, code](Database& database) -> absl::Status {
      HPO_RETURN_IF_ERROR(database.Execute("PRAGMA cache_size=10"));
      faults_.Fail({.operation = FileOperation::kWrite, .code = code, .file = "-wal"});
      for (int64_t row = 0; row < 200; ++row) {
        HPO_RETURN_IF_ERROR(database.Prepare("INSERT INTO t VALUES (?1)")
                                .Bind(absl::StrCat(key, std::string(4000, 'x')))
                                .Run());
      }
      return absl::OkStatus();
    };
  }

  int64_t NumRows() {
    int64_t count = -1;
    const absl::Status read = store_->Read([&](Database& database) -> absl::Status {
      Statement row = database.Prepare("SELECT COUNT(*) FROM t");
      HPO_RETURN_IF_ERROR(row.Next().status());
      count = row.Int(0);
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return count;
  }

  // Before the store opens: its connections go through it.
  FaultyVfs faults_;
};

MATCHER(IsUnavailable, "is UNAVAILABLE") { return absl::IsUnavailable(arg); }

TEST_F(FaultyWriteQueueTest, ABatchThatSqliteRolledBackFailsAsAWhole) {
  for (const int code : {SQLITE_FULL, SQLITE_IOERR_WRITE}) {
    SCOPED_TRACE(code);
    std::vector<WriteQueue::Work> writes;
    for (int64_t key = 0; key < 16; ++key) {
      writes.push_back(Insert(key));
      if (key == 8) writes.push_back(Spill(key, code));
    }
    EXPECT_THAT(WriteTogether(writes), Each(IsUnavailable()));
    EXPECT_GT(faults_.NumFailed(), 0) << "the test's write did not spill";
    EXPECT_EQ(NumRows(), 0) << "stored although its caller was told that it failed";

    faults_.Heal();
    EXPECT_TRUE(store_->Write(Insert(99)).ok()) << "recovers by itself";
    EXPECT_EQ(Committed(99), 1);
    ASSERT_TRUE(
        store_->Write([](Database& database) { return database.Execute("DELETE FROM t"); }).ok());
  }
}

TEST_F(FaultyWriteQueueTest, ACommitThatFailsStoresNothing) {
  const std::pair<FileOperation, int> faults[] = {{FileOperation::kWrite, SQLITE_FULL},
                                                  {FileOperation::kWrite, SQLITE_IOERR_WRITE},
                                                  {FileOperation::kSync, SQLITE_IOERR_FSYNC}};
  for (const auto& [operation, code] : faults) {
    SCOPED_TRACE(code);
    faults_.Fail({.operation = operation, .code = code, .count = kUntilHealed, .file = "-wal"});
    bool published = false;
    const absl::Status refused = store_->Write(Insert(1), [&] { published = true; });
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_THAT(refused.message(), HasSubstr("nothing was stored"));
    EXPECT_FALSE(published);
    EXPECT_EQ(Committed(1), 0);
    faults_.Heal();
    EXPECT_TRUE(store_->Write(Insert(2)).ok());
  }
}

// Every k-th write and sync of a series of commits: what was acknowledged is there, what was
// refused is not.
TEST_F(FaultyWriteQueueTest, WhicheverWriteFailsRowsAreWhatCallersWereTold) {
  int64_t key = 0;
  const std::pair<FileOperation, int> faults[] = {{FileOperation::kWrite, SQLITE_FULL},
                                                  {FileOperation::kSync, SQLITE_IOERR_FSYNC},
                                                  {FileOperation::kRead, SQLITE_IOERR_READ}};
  for (const auto& [operation, code] : faults) {
    for (int64_t k = 1; k <= 12; ++k) {
      SCOPED_TRACE(absl::StrCat("operation ", static_cast<int>(operation), ", k ", k));
      faults_.Fail({.operation = operation, .code = code, .first = k});
      std::vector<bool> stored;
      for (int64_t i = 0; i < 4; ++i) stored.push_back(store_->Write(Insert(key + i)).ok());
      faults_.Heal();
      for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(Committed(key + i), stored[i] ? 1 : 0);
      key += 4;
    }
  }
}

}  // namespace
}  // namespace hpo::server
