#include "common/threads/parallel.h"

#include <set>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

TEST(ForEachInParallel, CallsEachOnceWhateverTheirNumber) {
  for (const size_t count : {0u, 1u, 2u, 3u, 1000u}) {
    std::vector<int> calls(count);
    ForEachInParallel(count, [&calls](size_t i) { ++calls[i]; });
    EXPECT_EQ(calls, std::vector<int>(count, 1));
  }
}

TEST(ForEachInParallel, WorksAtTheSameTimeWhereThereAreProcessors) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one processor";
  // Each of two calls waits for the other.
  absl::Mutex mutex;
  std::set<std::thread::id> threads;
  ForEachInParallel(2, [&](size_t) {
    const absl::MutexLock lock(&mutex);
    threads.insert(std::this_thread::get_id());
    const auto both = [&threads] { return threads.size() == 2; };
    mutex.AwaitWithTimeout(absl::Condition(&both), absl::Seconds(20));
  });
  EXPECT_EQ(threads.size(), 2u);
}

}  // namespace
}  // namespace hpo
