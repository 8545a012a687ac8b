// How urgently the worker should end. Raised by signals, read by every loop. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
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

  // The worker may run until `limit` after `began`, a monotonic time.
  void SetTimeLimit(absl::Duration began, absl::Duration limit);
  // When it has to begin to end for that, a monotonic time: its ending time before the limit, half
  // way where that is later; infinite without a limit.
  absl::Duration DrainAt() const;

  // For poll(): POLLIN from a change of DrainAt() until the next clear.
  int drain_time_fd() const { return drain_time_changed_.fd(); }
  void ClearDrainTimeChanged() { drain_time_changed_.Clear(); }

 private:
  std::atomic<int> level_{static_cast<int>(StopLevel::kRun)};
  std::atomic<int64_t> ending_time_{absl::ToInt64Nanoseconds(kEndingTime)};
  // Nanoseconds; the most that there are stand for an infinite limit.
  std::atomic<int64_t> began_{0};
  std::atomic<int64_t> time_limit_{std::numeric_limits<int64_t>::max()};
  WakeUp wake_;
  WakeUp drain_time_changed_;
};

// Raises `stop` for each SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 (the warnings of Slurm and submitit)
// that the process gets, also where its parent ignored or blocked them: submitit's jobs begin with
// SIGTERM ignored. Several within kOneWish count once: `timeout`, batch systems and terminals with
// a wrapper send the same wish to the process and again to its group. Make it before any other
// thread: it blocks those signals in the caller, and threads inherit that.
class SignalWatcher {
 public:
  static constexpr absl::Duration kOneWish = absl::Seconds(1);

  // Raises `stop` to kDrain, too, at stop.DrainAt(). Both outlive the watcher.
  SignalWatcher(StopSignal& stop, const Clock& clock);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  void Watch();
  void Take(int signal);
  void DrainIfDue();

  StopSignal& stop_;
  const Clock& clock_;
  absl::Duration last_ = -absl::InfiniteDuration();  // monotonic, the last one that counted
  UniqueFd signals_;
  WakeUp end_;
  std::thread thread_;
};

}  // namespace hpo::agent
