#include "cli/commands/reminder.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::cli {
namespace {

using ::testing::ElementsAre;

// What was said, for another thread to wait for.
class Heard {
 public:
  void Say(const std::string& line) {
    absl::MutexLock lock(&mutex_);
    lines_.push_back(line);
  }
  std::vector<std::string> Await(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [this, count]()
                            ABSL_NO_THREAD_SAFETY_ANALYSIS { return lines_.size() >= count; };
    mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(30));
    return lines_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

constexpr ReminderTimes kSoon = {.first = absl::Milliseconds(1), .again = absl::Milliseconds(1)};

TEST(Reminder, SaysAgainAndAgainWhatIsWaitedFor) {
  Heard heard;
  int count = 0;
  Reminder reminder([&](const std::string& line) { heard.Say(line); }, kSoon);
  reminder.WaitFor([&count] { return absl::StrCat("waits ", ++count); });
  const std::vector<std::string> lines = heard.Await(3);
  ASSERT_GE(lines.size(), 3u);
  EXPECT_EQ(lines[0], "waits 1");
  EXPECT_EQ(lines[1], "waits 2");
}

TEST(Reminder, WhatIsOutOfDateIsNotSaid) {
  Heard heard;
  Reminder reminder([&](const std::string& line) { heard.Say(line); }, kSoon);
  absl::Notification asked;
  absl::Notification answer;
  reminder.WaitFor([&] {
    if (!asked.HasBeenNotified()) asked.Notify();
    answer.WaitForNotification();
    return "old";
  });
  asked.WaitForNotification();
  reminder.WaitFor([] { return "new"; });
  answer.Notify();
  EXPECT_EQ(heard.Await(1).front(), "new");
}

TEST(Reminder, NewsPutItOff) {
  Heard heard;
  const ReminderTimes never_again = {.first = absl::Milliseconds(1), .again = absl::Hours(1)};
  Reminder reminder([&](const std::string& line) { heard.Say(line); }, never_again);
  reminder.WaitFor([] { return "first"; });
  EXPECT_THAT(heard.Await(1), ElementsAre("first"));
  reminder.WaitFor([] { return "second"; });
  reminder.Said();
  EXPECT_THAT(heard.Await(2), ElementsAre("first", "second")) << "soon after the news";
}

TEST(Reminder, WithoutAnythingToWaitForItIsSilentAndEnds) {
  Heard heard;
  {
    Reminder reminder([&](const std::string& line) { heard.Say(line); }, kSoon);
    absl::Notification asked;
    reminder.WaitFor([&] {
      if (!asked.HasBeenNotified()) asked.Notify();
      return "";
    });
    asked.WaitForNotification();
    reminder.WaitFor(nullptr);
  }
  EXPECT_TRUE(heard.Await(0).empty());
}

}  // namespace
}  // namespace hpo::cli
