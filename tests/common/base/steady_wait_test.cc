#include "common/base/steady_wait.h"

#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

// Long enough that no machine is taken for a hang.
constexpr absl::Duration kForever = absl::Seconds(60);

absl::Duration Elapsed(absl::Duration since) { return SystemClock().Monotonic() - since; }

TEST(AwaitSteadily, EndsWhenItsTimeIsOver) {
  absl::Mutex mutex;
  const bool never = false;
  const absl::Duration began = SystemClock().Monotonic();
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(AwaitSteadily(mutex, absl::Condition(&never), absl::Milliseconds(50)));
  EXPECT_GE(Elapsed(began), absl::Milliseconds(50));
  EXPECT_LT(Elapsed(began), kForever);
}

TEST(AwaitSteadily, AsksOnceWhereThereIsNoTime) {
  absl::Mutex mutex;
  const bool never = false;
  const bool always = true;
  absl::MutexLock lock(&mutex);
  EXPECT_FALSE(AwaitSteadily(mutex, absl::Condition(&never), -absl::InfiniteDuration()));
  EXPECT_TRUE(AwaitSteadily(mutex, absl::Condition(&always), absl::ZeroDuration()));
}

TEST(AwaitSteadily, EndsWhenTheConditionHolds) {
  absl::Mutex mutex;
  bool told = false;
  std::thread teller([&] {
    absl::MutexLock lock(&mutex);
    told = true;
  });
  const absl::Duration began = SystemClock().Monotonic();
  {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(AwaitSteadily(mutex, absl::Condition(&told), absl::InfiniteDuration()));
  }
  EXPECT_LT(Elapsed(began), kForever);
  teller.join();
}

TEST(AwaitSteadily, EndsThoughTheMutexWasTakenWhenItsTimeWasOver) {
  absl::Mutex mutex;
  const bool never = false;
  bool waits = false;
  std::thread waiter([&] {
    absl::MutexLock lock(&mutex);
    waits = true;
    AwaitSteadily(mutex, absl::Condition(&never), absl::Milliseconds(20));
  });
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&waits));
    const absl::Duration began = SystemClock().Monotonic();
    while (Elapsed(began) < absl::Milliseconds(60)) std::this_thread::yield();
  }
  waiter.join();
}

TEST(AwaitSteadily, KeepsTheWaitsOfManyThreadsApart) {
  constexpr int kThreads = 32;
  constexpr int kWaits = 20;
  absl::Mutex shared;
  std::vector<absl::Mutex> own(kThreads);
  const bool never = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int wait = 0; wait < kWaits; ++wait) {
        absl::Mutex& mutex = wait % 2 == 0 ? shared : own[i];
        const absl::Duration timeout = absl::Milliseconds(1 + (i + wait) % 7);
        const absl::Duration began = SystemClock().Monotonic();
        absl::MutexLock lock(&mutex);
        EXPECT_FALSE(AwaitSteadily(mutex, absl::Condition(&never), timeout));
        EXPECT_GE(Elapsed(began), timeout);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hpo
