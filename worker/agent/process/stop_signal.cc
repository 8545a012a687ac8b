#include "worker/agent/process/stop_signal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <csignal>

#include "spdlog/spdlog.h"
#include "worker/agent/process/poll_timeout.h"

namespace hpo::agent {
namespace {

constexpr int kWatched[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

sigset_t WatchedSignals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : kWatched) sigaddset(&watched, number);
  return watched;
}

}  // namespace

void StopSignal::Raise() {
  int level = level_.load();
  while (level < static_cast<int>(StopLevel::kNow) &&
         !level_.compare_exchange_weak(level, level + 1)) {
  }
  wake_.Notify();
}

bool StopSignal::WaitFor(absl::Duration timeout) {
  if (raised()) return true;
  pollfd raise{.fd = fd(), .events = POLLIN, .revents = 0};
  poll(&raise, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  return raised();
}

void StopSignal::SetEndingTime(absl::Duration time) {
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(time);
  if (ending_time_.exchange(nanoseconds) != nanoseconds) drain_time_changed_.Notify();
}

void StopSignal::SetTimeLimit(absl::Duration began, absl::Duration limit) {
  began_ = absl::ToInt64Nanoseconds(began);
  time_limit_ = absl::ToInt64Nanoseconds(limit);
  drain_time_changed_.Notify();
}

absl::Duration StopSignal::DrainAt() const {
  const int64_t nanoseconds = time_limit_.load();
  if (nanoseconds == std::numeric_limits<int64_t>::max()) return absl::InfiniteDuration();
  const absl::Duration limit = absl::Nanoseconds(nanoseconds);
  return absl::Nanoseconds(began_.load()) + std::max(limit - ending_time(), limit / 2);
}

SignalWatcher::SignalWatcher(StopSignal& stop, const Clock& clock) : stop_(stop), clock_(clock) {
  const sigset_t watched = WatchedSignals();
  pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  // Linux keeps a blocked signal also where it is ignored; POSIX does not say so. And what a
  // process ignores, the programs that it starts ignore as well.
  for (const int number : kWatched) signal(number, SIG_DFL);
  signals_.Reset(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  HPO_CHECK(signals_.ok());
  thread_ = std::thread([this] { Watch(); });
}

SignalWatcher::~SignalWatcher() {
  end_.Notify();
  thread_.join();
}

void SignalWatcher::Watch() {
  for (;;) {
    pollfd events[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                       {.fd = end_.fd(), .events = POLLIN, .revents = 0},
                       {.fd = stop_.drain_time_fd(), .events = POLLIN, .revents = 0}};
    const absl::Duration wait =
        stop_.raised() ? absl::InfiniteDuration() : stop_.DrainAt() - clock_.Monotonic();
    poll(events, 3, PollTimeout(wait));
    if (events[2].revents != 0) stop_.ClearDrainTimeChanged();
    DrainIfDue();
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
      Take(static_cast<int>(info.ssi_signo));
    }
    if (events[1].revents != 0) return;
  }
}

void SignalWatcher::DrainIfDue() {
  if (stop_.raised() || clock_.Monotonic() < stop_.DrainAt()) return;
  stop_.Raise();
  spdlog::info("the time limit is near: giving the trial back");
}

void SignalWatcher::Take(int signal) {
  const absl::Duration now = clock_.Monotonic();
  if (now - last_ < kOneWish) return;
  last_ = now;
  stop_.Raise();
  spdlog::info(
      "signal {}: {}", signal,
      stop_.level() == StopLevel::kDrain
          ? "giving the trial back, then ending; another signal after a second kills the trainer"
          : "ending now");
}

}  // namespace hpo::agent
