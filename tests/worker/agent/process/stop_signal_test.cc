#include "worker/agent/process/stop_signal.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "gtest/gtest.h"
#include "tests/fakes/simulated_clock.h"

namespace hpo::agent {
namespace {

// Waits for the next raise and takes it; false after 20 s.
bool AwaitRaise(StopSignal& stop) {
  pollfd raised{.fd = stop.fd(), .events = POLLIN, .revents = 0};
  if (poll(&raised, 1, 20'000) != 1) return false;
  stop.Clear();
  return true;
}

TEST(StopSignal, GoesUpOneLevelAtATimeAndStaysAtTheTop) {
  StopSignal stop;
  EXPECT_EQ(stop.level(), StopLevel::kRun);
  EXPECT_FALSE(stop.raised());
  stop.Raise();
  EXPECT_EQ(stop.level(), StopLevel::kDrain);
  stop.Raise();
  EXPECT_EQ(stop.level(), StopLevel::kNow);
  stop.Raise();
  EXPECT_EQ(stop.level(), StopLevel::kNow);
}

TEST(StopSignal, WaitingEndsWithTheTimeOrTheRaise) {
  StopSignal stop;
  EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(1)));
  std::thread raiser([&stop] { stop.Raise(); });
  EXPECT_TRUE(stop.WaitFor(absl::Minutes(1)));
  raiser.join();
  stop.Clear();
  EXPECT_TRUE(stop.WaitFor(absl::Minutes(1)));  // at once: it is still raised
}

TEST(SignalWatcher, EachSignalDrainsAndALaterOneEnds) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    SCOPED_TRACE(signal);
    StopSignal stop;
    SimulatedClock clock;
    const SignalWatcher watcher(stop, clock);
    kill(getpid(), signal);
    ASSERT_TRUE(AwaitRaise(stop));
    EXPECT_EQ(stop.level(), StopLevel::kDrain);
    clock.Advance(SignalWatcher::kOneWish);
    kill(getpid(), signal);
    ASSERT_TRUE(AwaitRaise(stop));
    EXPECT_EQ(stop.level(), StopLevel::kNow);
  }
}

// Jobs of submitit begin with SIGTERM ignored, and a shell may block what it likes.
TEST(SignalWatcher, HearsWhatItsParentIgnoredOrBlocked) {
  for (const int number : {SIGTERM, SIGUSR1, SIGUSR2}) {
    SCOPED_TRACE(number);
    signal(number, SIG_IGN);
    StopSignal stop;
    SimulatedClock clock;
    const SignalWatcher watcher(stop, clock);
    kill(getpid(), number);
    ASSERT_TRUE(AwaitRaise(stop));
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_DFL) << "what this process starts would ignore it, too";
  }
}

TEST(SignalWatcher, ATimeLimitThatIsLearntLaterCounts) {
  StopSignal stop;
  SimulatedClock clock;
  const SignalWatcher watcher(stop, clock);
  EXPECT_EQ(stop.DrainAt(), absl::InfiniteDuration());
  EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(20)));
  const absl::Duration began = clock.Monotonic();
  stop.SetTimeLimit(began, absl::Minutes(10));
  EXPECT_EQ(stop.DrainAt(), began + absl::Minutes(10) - StopSignal::kEndingTime);
  clock.Advance(absl::Minutes(9));
  stop.SetTimeLimit(began, absl::Minutes(10));
  ASSERT_TRUE(AwaitRaise(stop));
}

TEST(SignalWatcher, OneWishSentTwiceIsOneWish) {
  StopSignal stop;
  SimulatedClock clock;
  {
    const SignalWatcher watcher(stop, clock);
    kill(getpid(), SIGTERM);
    ASSERT_TRUE(AwaitRaise(stop));
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGINT);
    clock.Advance(SignalWatcher::kOneWish - absl::Milliseconds(1));
    kill(getpid(), SIGUSR1);
  }
  EXPECT_EQ(stop.level(), StopLevel::kDrain);
}

TEST(SignalWatcher, DrainsBeforeTheTimeLimit) {
  StopSignal stop;
  const SystemClock clock;
  const absl::Duration began = clock.Monotonic();
  stop.SetTimeLimit(began, absl::Milliseconds(40));
  const SignalWatcher watcher(stop, clock);
  ASSERT_TRUE(AwaitRaise(stop));
  EXPECT_EQ(stop.level(), StopLevel::kDrain);
  EXPECT_GE(clock.Monotonic() - began, absl::Milliseconds(20));
}

TEST(SignalWatcher, LeavesTimeToSaveBeforeALongLimit) {
  StopSignal stop;
  const SystemClock clock;
  const SignalWatcher watcher(stop, clock);
  stop.SetTimeLimit(clock.Monotonic(), StopSignal::kEndingTime + absl::Milliseconds(1));
  EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(50)));  // half of the minute is later
}

TEST(SignalWatcher, LeavesTheTimeThatTheRunningTrialNeeds) {
  StopSignal stop;
  SimulatedClock clock;
  const SignalWatcher watcher(stop, clock);
  stop.SetTimeLimit(clock.Monotonic(), absl::Minutes(10));
  clock.Advance(absl::Minutes(6));
  EXPECT_FALSE(stop.WaitFor(absl::Milliseconds(20)));
  stop.SetEndingTime(absl::Minutes(4) + absl::Seconds(1));
  ASSERT_TRUE(AwaitRaise(stop));
  EXPECT_EQ(stop.level(), StopLevel::kDrain);
}

}  // namespace
}  // namespace hpo::agent
