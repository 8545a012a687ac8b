// Says what a command waits for wherever nothing has been said for a while, so that no wait is
// silent.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "absl/time/time.h"

namespace hpo::cli {

struct ReminderTimes {
  absl::Duration first = absl::Seconds(9);   // after something else was said
  absl::Duration again = absl::Seconds(11);  // after a reminder
};

// Thread-safe. It has a thread of its own, which its destructor ends.
class Reminder {
 public:
  // `say` is called on its thread.
  explicit Reminder(std::function<void(const std::string&)> say, const ReminderTimes& times = {});
  ~Reminder();

  Reminder(const Reminder&) = delete;
  Reminder& operator=(const Reminder&) = delete;

  // From now on `what` says what is waited for, in one line; empty, or null: nothing. It is called
  // on the reminder's thread, and may take as long as a call of the server.
  void WaitFor(std::function<std::string()> what);

  // Something else was said just now.
  void Said();

 private:
  void Run();
  // Until a reminder is due; false: the end.
  bool AwaitDue(std::unique_lock<std::mutex>& lock);

  const std::function<void(const std::string&)> say_;
  const ReminderTimes times_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<std::string()> what_;
  absl::Time due_;
  int64_t num_changes_ = 0;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace hpo::cli
