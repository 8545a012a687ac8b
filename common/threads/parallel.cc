#include "common/threads/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace hpo {
namespace {

constexpr size_t kMostThreads = 4;

}  // namespace

void ForEachInParallel(size_t count, absl::FunctionRef<void(size_t)> work) {
  std::atomic<size_t> next = 0;
  const auto take = [&next, count, work] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  const size_t processors = std::max<size_t>(1, std::thread::hardware_concurrency());
  const size_t threads = std::min({kMostThreads, processors, count});
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) {
    try {
      others.emplace_back(take);
    } catch (const std::system_error&) {
      break;
    }
  }
  take();
}

}  // namespace hpo
