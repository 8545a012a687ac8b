#include "cli/commands/reminder.h"

#include <utility>

#include "absl/time/clock.h"

namespace hpo::cli {

Reminder::Reminder(std::function<void(const std::string&)> say, const ReminderTimes& times)
    : say_(std::move(say)), times_(times), due_(absl::Now() + times.first) {
  thread_ = std::thread([this] { Run(); });
}

Reminder::~Reminder() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Reminder::WaitFor(std::function<std::string()> what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  ++num_changes_;
}

void Reminder::Said() {
  {
    const std::lock_guard lock(mutex_);
    due_ = absl::Now() + times_.first;
    ++num_changes_;
  }
  changed_.notify_all();
}

bool Reminder::AwaitDue(std::unique_lock<std::mutex>& lock) {
  while (!ends_) {
    const absl::Duration left = due_ - absl::Now();
    if (left <= absl::ZeroDuration()) return true;
    changed_.wait_for(lock, absl::ToChronoMilliseconds(left) + std::chrono::milliseconds(1));
  }
  return false;
}

void Reminder::Run() {
  std::unique_lock lock(mutex_);
  while (AwaitDue(lock)) {
    const std::function<std::string()> what = what_;
    const int64_t num_changes = num_changes_;
    lock.unlock();
    const std::string line = what ? what() : "";
    lock.lock();
    // What it says may be out of date.
    if (ends_ || num_changes_ != num_changes) continue;
    due_ = absl::Now() + times_.again;
    lock.unlock();
    if (!line.empty()) say_(line);
    lock.lock();
  }
}

}  // namespace hpo::cli
