#include "common/base/steady_wait.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace hpo {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr absl::Duration kLongest = absl::Hours(24 * 365);
// Between two rounds of the alarm while waits are over: many that end together are one round.
constexpr auto kRound = std::chrono::milliseconds(5);

// A thread that locks and unlocks the mutexes of waits that are over: each unlocking has absl look
// at the waiters' conditions again. It never blocks on one of them: where a mutex is taken, it
// tries again until the waiter is gone, so waiters may come and go while they hold theirs.
class Alarm {
 public:
  using Waits = std::multimap<SteadyClock::time_point, absl::Mutex*>;

  // Signals are for other threads.
  Alarm() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { Run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  Waits::iterator Add(SteadyClock::time_point end, absl::Mutex& mutex) {
    const std::lock_guard lock(mutex_);
    const auto wait = waits_.emplace(end, &mutex);
    if (wait == waits_.begin()) earliest_changed_.notify_one();
    return wait;
  }

  // The alarm does not touch the wait's mutex afterwards.
  void Remove(Waits::iterator wait) {
    const std::lock_guard lock(mutex_);
    waits_.erase(wait);
  }

 private:
  [[noreturn]] void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (waits_.empty()) {
        earliest_changed_.wait(lock);
      } else if (const SteadyClock::time_point end = waits_.begin()->first;
                 end > SteadyClock::now()) {
        earliest_changed_.wait_until(lock, end);
      } else {
        WakeThoseOver();
        earliest_changed_.wait_for(lock, kRound);
      }
    }
  }

  void WakeThoseOver() {
    std::set<absl::Mutex*> woken;
    const auto end = waits_.upper_bound(SteadyClock::now());
    for (auto wait = waits_.begin(); wait != end; ++wait) {
      absl::Mutex* const mutex = wait->second;
      if (woken.insert(mutex).second && mutex->TryLock()) mutex->Unlock();
    }
  }

  std::mutex mutex_;
  std::condition_variable earliest_changed_;
  Waits waits_;
};

// For the life of the process, as the thread is.
Alarm& TheAlarm() {
  static Alarm* const kAlarm = new Alarm;
  return *kAlarm;
}

}  // namespace

bool AwaitSteadily(absl::Mutex& mutex, const absl::Condition& condition, absl::Duration timeout) {
  if (condition.Eval()) return true;
  if (timeout <= absl::ZeroDuration()) return false;
  const SteadyClock::time_point end =
      SteadyClock::now() + absl::ToChronoNanoseconds(std::min(timeout, kLongest));
  const auto is_over = [&condition, end] { return condition.Eval() || SteadyClock::now() >= end; };
  const auto wait = TheAlarm().Add(end, mutex);
  mutex.Await(absl::Condition(&is_over));
  TheAlarm().Remove(wait);
  return condition.Eval();
}

}  // namespace hpo
