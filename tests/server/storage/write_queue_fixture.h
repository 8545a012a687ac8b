// A store on a file of its own, with a table `t (k)`, and writes that share a commit.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/status.h"
#include "gtest/gtest.h"
#include "server/storage/store.h"
#include "tests/fakes/temporary_database.h"

namespace hpo::server {

class WriteQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = Store::Open(file_.path());
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    ASSERT_TRUE(
        store_->Write([](Database& database) { return database.Execute("CREATE TABLE t (k)"); })
            .ok());
  }

  static WriteQueue::Work Insert(int64_t key) {
    return [key](Database& database) {
      return database.Prepare("INSERT INTO t VALUES (?1)").Bind(key).Run();
    };
  }

  // What another connection sees: committed rows only.
  int64_t Committed(int64_t key) {
    int64_t count = -1;
    const absl::Status read = store_->Read([&](Database& database) -> absl::Status {
      Statement row = database.Prepare("SELECT COUNT(*) FROM t WHERE k = ?1");
      HPO_RETURN_IF_ERROR(row.Bind(key).Next().status());
      count = row.Int(0);
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return count;
  }

  // Runs `writes` so that they are all queued, in this order, while the writer is busy: they share
  // one commit.
  std::vector<absl::Status> WriteTogether(const std::vector<WriteQueue::Work>& writes) {
    absl::Notification busy;
    absl::Notification go_on;
    std::thread first([&] {
      EXPECT_TRUE(store_
                      ->Write([&](Database&) {
                        busy.Notify();
                        go_on.WaitForNotification();
                        return absl::OkStatus();
                      })
                      .ok());
    });
    busy.WaitForNotification();
    std::vector<absl::Status> statuses(writes.size());
    std::vector<std::thread> writers;
    for (size_t i = 0; i < writes.size(); ++i) {
      writers.emplace_back([&, i] { statuses[i] = store_->Write(writes[i]); });
      while (store_->write_stats().waiting <= static_cast<int64_t>(i)) std::this_thread::yield();
    }
    go_on.Notify();
    first.join();
    for (std::thread& writer : writers) writer.join();
    return statuses;
  }

  TemporaryDatabase file_;
  std::unique_ptr<Store> store_;
};

}  // namespace hpo::server
