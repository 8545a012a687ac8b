#include "worker/trainer/data/batch_ahead.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

// A batch that tells its rows.
text::TokenBatch BatchOf(const text::BatchRows& rows) {
  text::TokenBatch batch;
  batch.rows = static_cast<int64_t>(rows.size());
  batch.ids = rows;
  return batch;
}

TEST(BatchAhead, GivesTheBatchOfTheRowsWhateverWasBegun) {
  BatchAhead ahead(BatchOf);
  EXPECT_EQ(ahead.Take({1, 2}).ids, (text::BatchRows{1, 2}));  // nothing was begun
  ahead.Start({3});
  EXPECT_EQ(ahead.Take({3}).ids, text::BatchRows{3});
  EXPECT_EQ(ahead.Take({3}).ids, text::BatchRows{3});  // redone
  ahead.Start({4});
  EXPECT_EQ(ahead.Take({5, 6}).ids, (text::BatchRows{5, 6}));  // another plan
  EXPECT_EQ(ahead.Take({4}).ids, text::BatchRows{4});
  ahead.Start({7});
  ahead.Start({8});
  EXPECT_EQ(ahead.Take({7}).ids, text::BatchRows{7});
  EXPECT_EQ(ahead.Take({8}).ids, text::BatchRows{8});
}

TEST(BatchAhead, IsPutTogetherByAnotherThreadMeanwhile) {
  const std::thread::id here = std::this_thread::get_id();
  absl::Notification begun;
  std::atomic<int> calls = 0;
  std::thread::id by;
  BatchAhead ahead([&](const text::BatchRows& rows) {
    by = std::this_thread::get_id();
    if (++calls == 1) begun.Notify();
    return BatchOf(rows);
  });
  ahead.Start({1});
  begun.WaitForNotification();  // nobody has asked for it yet
  EXPECT_EQ(ahead.Take({1}).ids, text::BatchRows{1});
  EXPECT_EQ(calls, 1);
  EXPECT_NE(by, here);
}

TEST(BatchAhead, WhatIsBeingMadeIsWaitedForAndOthersAreNot) {
  absl::Notification begun;
  absl::Notification go_on;
  BatchAhead ahead([&](const text::BatchRows& rows) {
    if (rows.front() == 1) {
      begun.Notify();
      go_on.WaitForNotification();
    }
    return BatchOf(rows);
  });
  ahead.Start({1});
  begun.WaitForNotification();
  EXPECT_EQ(ahead.Take({2}).ids, text::BatchRows{2});
  ahead.Start({3});  // lies there untouched, as the thread is busy
  EXPECT_EQ(ahead.Take({3}).ids, text::BatchRows{3});
  go_on.Notify();
}

TEST(BatchAhead, AnErrorComesWithTheRowsThatHaveIt) {
  BatchAhead ahead([](const text::BatchRows& rows) {
    if (rows.front() < 0) throw std::runtime_error(absl::StrCat("row ", rows.front()));
    return BatchOf(rows);
  });
  ahead.Start({-1});
  EXPECT_EQ(ahead.Take({1}).ids, text::BatchRows{1});
  EXPECT_THROW(ahead.Take({-1}), std::runtime_error);
  EXPECT_THROW(ahead.Take({-2}), std::runtime_error);
  ahead.Start({-3});
  ahead.Start({2});
  EXPECT_EQ(ahead.Take({2}).ids, text::BatchRows{2});
}

TEST(BatchAhead, EndsWithWorkLeft) {
  for (int i = 0; i < 200; ++i) {
    BatchAhead ahead(BatchOf);
    for (int64_t row = 0; row < i % 3; ++row) ahead.Start({row});
  }
}

TEST(BatchAhead, ManyInARow) {
  BatchAhead ahead(BatchOf);
  for (int64_t row = 0; row < 2000; ++row) {
    EXPECT_EQ(ahead.Take({row}).ids, text::BatchRows{row});
    ahead.Start({row + 1});
  }
}

}  // namespace
}  // namespace hpo::trainer
