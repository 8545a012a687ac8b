#include "worker/trainer/memory/counting_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;

class CountingAllocatorTest : public testing::Test {
 protected:
  ~CountingAllocatorTest() override { allocator_.SetLimit(Bytes{}); }

  CountingAllocator& allocator_ = CountingAllocator::Install();
  const Bytes baseline_ = allocator_.live();
};

TEST_F(CountingAllocatorTest, CountsBytesRoundedToTheGranularity) {
  {
    const torch::Tensor small = at::empty({1});
    EXPECT_EQ(allocator_.live() - baseline_, Bytes{64});
    const torch::Tensor large = at::empty({1000});
    EXPECT_EQ(allocator_.live() - baseline_, Bytes{64 + 4032});
    const torch::Tensor view = large.view({10, 100});
    const torch::Tensor nothing = at::empty({0});
    EXPECT_EQ(allocator_.live() - baseline_, Bytes{64 + 4032});
  }
  EXPECT_EQ(allocator_.live(), baseline_);
}

TEST_F(CountingAllocatorTest, PeakIsTheMostThatWasLiveSinceTheReset) {
  allocator_.ResetPeak();
  const torch::Tensor kept = at::empty({16});
  { const torch::Tensor dropped = at::empty({1600}); }
  EXPECT_EQ(allocator_.peak() - baseline_, Bytes{64 + 6400});
  allocator_.ResetPeak();
  EXPECT_EQ(allocator_.peak() - baseline_, Bytes{64});
}

TEST_F(CountingAllocatorTest, RefusesWhatGoesOverTheBudget) {
  allocator_.SetLimit(baseline_ + KiB(4));
  const torch::Tensor exactly = at::empty({1024});
  EXPECT_FALSE(allocator_.TakeRefused().has_value());
  bool refused = false;
  try {
    at::empty({1});
  } catch (const c10::OutOfMemoryError& error) {
    refused = true;
    EXPECT_THAT(error.msg(), HasSubstr("out of memory. Tried to allocate 64 B"));
    EXPECT_THAT(error.msg(), HasSubstr("0 B is free"));
  }
  ASSERT_TRUE(refused);
  const auto record = allocator_.TakeRefused();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->requested, Bytes{64});
  EXPECT_EQ(record->live, baseline_ + KiB(4));
  EXPECT_EQ(record->limit, baseline_ + KiB(4));
  EXPECT_FALSE(allocator_.TakeRefused().has_value());
  EXPECT_EQ(allocator_.live(), baseline_ + KiB(4));
}

TEST_F(CountingAllocatorTest, ALimitBelowWhatIsLiveOnlyStopsNewAllocations) {
  const torch::Tensor kept = at::empty({1024});
  allocator_.SetLimit(Bytes{1});
  EXPECT_EQ(kept.numel(), 1024);
  EXPECT_THROW(at::empty({1}), c10::OutOfMemoryError);
  allocator_.SetLimit(Bytes{});
  EXPECT_NO_THROW(at::empty({1}));
}

TEST_F(CountingAllocatorTest, RawAllocationsAreCountedToo) {
  c10::Allocator* const installed = c10::GetCPUAllocator();
  void* const data = installed->raw_allocate(100);
  EXPECT_EQ(allocator_.live() - baseline_, Bytes{128});
  installed->raw_deallocate(data);
  EXPECT_EQ(allocator_.live(), baseline_);
}

TEST_F(CountingAllocatorTest, FreesWhatWasAllocatedBeforeItWasInstalled) {
  // What torch's own allocator gave may come back through the installed one's raw_deleter.
  void* const foreign = c10::GetDefaultCPUAllocator()->raw_allocate(4096);
  c10::GetCPUAllocator()->raw_deallocate(foreign);
  EXPECT_EQ(allocator_.live(), baseline_);
}

// Writes down what it sees, and refuses one size.
class Recorder final : public AllocationWatcher {
 public:
  explicit Recorder(Bytes refused) : refused_(refused) {}
  bool Admit(Bytes size) override { return size != refused_; }
  void Allocated(const void* address, Bytes size) override {
    ids_[address] = ++last_id_;
    events_.push_back(absl::StrCat("+", last_id_, " ", size.count));
  }
  void Freed(const void* address, Bytes size) override {
    events_.push_back(absl::StrCat("-", ids_[address], " ", size.count));
  }
  const std::vector<std::string>& events() const { return events_; }

 private:
  Bytes refused_;
  int last_id_ = 0;
  std::map<const void*, int> ids_;
  std::vector<std::string> events_;
};

TEST_F(CountingAllocatorTest, AWatcherSeesEveryEventInOrderAndMayRefuse) {
  Recorder recorder(Bytes{4032});
  const torch::Tensor before = at::empty({16});
  allocator_.SetWatcher(&recorder);
  torch::Tensor first = at::empty({1});
  const torch::Tensor second = at::empty({100});
  first.reset();
  EXPECT_THROW(at::empty({1000}), c10::OutOfMemoryError);
  EXPECT_NO_THROW(at::empty({16}));
  allocator_.SetWatcher(nullptr);
  const torch::Tensor unseen = at::empty({1});
  EXPECT_THAT(recorder.events(),
              testing::ElementsAre("+1 64", "+2 448", "-1 64", "+3 64", "-3 64"));
  const auto refused = allocator_.TakeRefused();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->requested, Bytes{4032});
  EXPECT_EQ(allocator_.live() - baseline_, Bytes{64 + 448 + 64});
}

TEST_F(CountingAllocatorTest, CountsExactlyAcrossThreads) {
  allocator_.SetLimit(baseline_ + MiB(1));
  allocator_.ResetPeak();
  std::atomic<int> refusals{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        try {
          const torch::Tensor a = at::empty({1 << 16});
          const torch::Tensor b = at::empty({1 << 16});
        } catch (const c10::OutOfMemoryError&) {
          ++refusals;
        }
        EXPECT_LE(allocator_.live(), baseline_ + MiB(1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator_.live(), baseline_);
  EXPECT_LE(allocator_.peak(), baseline_ + MiB(1));
}

}  // namespace
}  // namespace hpo::trainer
