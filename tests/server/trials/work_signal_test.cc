#include "server/trials/work_signal.h"

#include <thread>

#include "gtest/gtest.h"

namespace hpo::server {
namespace {

TEST(WorkSignal, NewsOfBeforeTheWaitAreNotMissed) {
  WorkSignal signal;
  const int64_t seen = signal.generation();
  EXPECT_FALSE(signal.AwaitAfter(seen, absl::ZeroDuration()));
  signal.Raise();
  EXPECT_TRUE(signal.AwaitAfter(seen, absl::ZeroDuration()));
  EXPECT_FALSE(signal.AwaitAfter(signal.generation(), absl::ZeroDuration()));
}

TEST(WorkSignal, ADrainWakesWhoeverWaits) {
  WorkSignal signal;
  const int64_t seen = signal.generation();
  bool woken = false;
  std::thread waiting([&] { woken = signal.AwaitAfter(seen, absl::Seconds(20)); });
  EXPECT_FALSE(signal.draining());
  signal.Drain();
  waiting.join();
  EXPECT_TRUE(woken);
  EXPECT_TRUE(signal.draining());
}

}  // namespace
}  // namespace hpo::server
