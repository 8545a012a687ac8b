// How urgently the worker should end. Raised by signals, read by every loop. Thread-safe.
#pragma once

#include <atomic>
#include <thread>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/agent/process/wake_up.h"

namespace hpo::agent {

enum class StopLevel {
  kRun,
  kDrain,  // give the trial back, then end
  kNow,    // kill the trainer and end
};

class StopSignal {
 public:
  StopLevel level() const { return static_cast<StopLevel>(level_.load()); }
  bool raised() const { return level() != StopLevel::kRun; }

  // One level up: run, drain, now.
  void Raise();

  // For poll(): POLLIN from a Raise() until Clear(). level() is not cleared.
  int fd() const { return wake_.fd(); }
  void Clear() { wake_.Clear(); }

  // Waits up to `timeout`; returns early, true, when raised.
  bool WaitFor(absl::Duration timeout);

  // How long the worker takes to end from a raise on: time to save a trial and give it back.
  static constexpr absl::Duration kEndingTime = absl::Seconds(60);
  void SetEndingTime(absl::Duration time);
  absl::Duration ending_time() const { return absl::Nanoseconds(ending_time_.load()); }

  // For poll(): POLLIN from a SetEndingTime() that changed it until the next clear.
  int ending_time_fd() const { return ending_time_changed_.fd(); }
  void ClearEndingTimeChanged() { ending_time_changed_.Clear(); }

 private:
  std::atomic<int> level_{static_cast<int>(StopLevel::kRun)};
  std::atomic<int64_t> ending_time_{absl::ToInt64Nanoseconds(kEndingTime)};
  WakeUp wake_;
  WakeUp ending_time_changed_;
};

// Raises `stop` for each SIGTERM, SIGINT and SIGUSR1 (Slurm's warning) that the process gets.
// Several within kOneWish count once: `timeout`, batch systems and terminals with a wrapper send
// the same wish to the process and again to its group. Make it before any other thread: it blocks
// those signals in the caller, and threads inherit that.
class SignalWatcher {
 public:
  static constexpr absl::Duration kOneWish = absl::Seconds(1);

  // Raises `stop` to kDrain, too, its ending time before `time_limit` has passed (half way, where
  // that is later). Both outlive the watcher.
  SignalWatcher(StopSignal& stop, const Clock& clock,
                absl::Duration time_limit = absl::InfiniteDuration());
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  void Watch();
  void Take(int signal);
  absl::Duration DrainAt() const;
  void DrainIfDue();

  StopSignal& stop_;
  const Clock& clock_;
  const absl::Duration time_limit_;
  // Monotonic times.
  const absl::Duration began_;
  absl::Duration last_ = -absl::InfiniteDuration();  // the last one that counted
  UniqueFd signals_;
  WakeUp end_;
  std::thread thread_;
};

}  // namespace hpo::agent
