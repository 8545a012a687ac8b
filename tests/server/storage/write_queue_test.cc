#include "server/storage/write_queue.h"

#include <atomic>
#include <thread>

#include "tests/server/storage/write_queue_fixture.h"

namespace hpo::server {
namespace {

TEST_F(WriteQueueTest, AWriteIsCommittedBeforeItsCallerHears) {
  for (int64_t key = 0; key < 20; ++key) {
    bool seen_after_commit = false;
    ASSERT_TRUE(store_->Write(Insert(key), [&] { seen_after_commit = Committed(key) == 1; }).ok());
    EXPECT_TRUE(seen_after_commit) << "committed before it is published";
    EXPECT_EQ(Committed(key), 1);
  }
}

TEST_F(WriteQueueTest, AFailedWriteUndoesItselfAlone) {
  const auto failing = [](Database& database) -> absl::Status {
    HPO_RETURN_IF_ERROR(Insert(2)(database));
    return absl::AbortedError("changed my mind");
  };
  const std::vector<absl::Status> statuses = WriteTogether({Insert(1), failing, Insert(3)});
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_TRUE(absl::IsAborted(statuses[1]));
  EXPECT_TRUE(statuses[2].ok());
  EXPECT_EQ(Committed(1), 1);
  EXPECT_EQ(Committed(2), 0);
  EXPECT_EQ(Committed(3), 1);
}

TEST_F(WriteQueueTest, AFailedWriteIsNotPublished) {
  bool published = false;
  EXPECT_FALSE(
      store_->Write([](Database&) { return absl::AbortedError("no"); }, [&] { published = true; })
          .ok());
  EXPECT_FALSE(published);
}

TEST_F(WriteQueueTest, WritesThatWaitShareACommit) {
  const WriteQueue::Stats before = store_->write_stats();
  std::vector<WriteQueue::Work> writes;
  for (int64_t key = 0; key < 32; ++key) writes.push_back(Insert(key));
  for (const absl::Status& status : WriteTogether(writes)) EXPECT_TRUE(status.ok());
  const WriteQueue::Stats after = store_->write_stats();
  EXPECT_EQ(after.writes - before.writes, 33);
  EXPECT_LT(after.commits - before.commits, 33) << "no two writes shared a commit";
}

TEST_F(WriteQueueTest, ManyThreadsLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int64_t kEach = 50;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t i = 0; i < kEach; ++i) {
        EXPECT_TRUE(store_->Write(Insert(thread * kEach + i)).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t total = 0;
  ASSERT_TRUE(store_
                  ->Read([&](Database& database) -> absl::Status {
                    Statement row = database.Prepare("SELECT COUNT(DISTINCT k) FROM t");
                    HPO_RETURN_IF_ERROR(row.Next().status());
                    total = row.Int(0);
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(total, kThreads * kEach);
}

TEST_F(WriteQueueTest, AReaderCannotWrite) {
  EXPECT_FALSE(store_->Read([](Database& database) { return Insert(1)(database); }).ok());
  EXPECT_EQ(Committed(1), 0);
}

}  // namespace
}  // namespace hpo::server
