#include "tests/worker/trainer/trace_recorder.h"

#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/memory/counting_allocator.h"

namespace hpo::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Lines(std::vector<AllocatorEvent> events) {
  std::vector<std::string> lines;
  for (AllocatorEvent& event : events) {
    event.operation.clear();
    lines.push_back(FormatEvent(event));
  }
  return lines;
}

TEST(TraceRecorder, NumbersBlocksInTheOrderOfTheirAllocation) {
  TraceRecorder recorder;
  {
    const torch::Tensor first = at::empty({16});
    torch::Tensor second = at::empty({100});
    second.reset();
    const torch::Tensor third = at::empty({1});
    const torch::Tensor view = first.view({4, 4});
    const torch::Tensor nothing = at::empty({0});
  }
  EXPECT_THAT(Lines(recorder.Take()),
              ElementsAre("+ 0 64 B ", "+ 1 448 B ", "- 1 ", "+ 2 64 B ", "- 2 ", "- 0 "));
}

TEST(TraceRecorder, NumbersGoOnAfterTake) {
  TraceRecorder recorder;
  torch::Tensor kept = at::empty({16});
  EXPECT_THAT(Lines(recorder.Take()), ElementsAre("+ 0 64 B "));
  torch::Tensor later = at::empty({16});
  kept.reset();
  EXPECT_THAT(Lines(recorder.Take()), ElementsAre("+ 1 64 B ", "- 0 "));
}

TEST(TraceRecorder, ABlockFromBeforeIsNoPartOfIt) {
  CountingAllocator::Install();
  torch::Tensor old = at::empty({16});
  TraceRecorder recorder;
  old.reset();
  EXPECT_THAT(recorder.Take(), IsEmpty());
}

TEST(TraceRecorder, NamesTheOperationsThatRun) {
  const torch::Tensor weight = at::ones({8, 8}).requires_grad_();
  TraceRecorder recorder;
  torch::Tensor loss = at::matmul(weight, weight).sum();
  const std::vector<AllocatorEvent> forward = recorder.Take();
  ASSERT_FALSE(forward.empty());
  EXPECT_THAT(forward.front().operation, HasSubstr("aten::matmul > aten::mm"));
  loss.backward();
  bool in_backward = false;
  for (const AllocatorEvent& event : recorder.Take()) {
    in_backward |= event.operation.find("MmBackward0") != std::string::npos;
  }
  EXPECT_TRUE(in_backward);
}

TEST(TraceRecorder, RecordsNothingAfterItsEnd) {
  torch::Tensor kept;
  {
    TraceRecorder recorder;
    kept = at::empty({16});
  }
  TraceRecorder next;
  EXPECT_THAT(next.Take(), IsEmpty());
}

TEST(TraceRecorder, LosesNoEventOfSeveralThreads) {
  TraceRecorder recorder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) at::empty({16 + i});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int64_t> balance(800, 0);
  for (const AllocatorEvent& event : recorder.Take()) {
    ASSERT_GE(event.block, 0);
    ASSERT_LT(event.block, 800);
    int64_t& count = balance[static_cast<size_t>(event.block)];
    count += event.kind == '+' ? 1 : 2;
  }
  EXPECT_THAT(balance, testing::Each(3));  // one allocation, one free
}

}  // namespace
}  // namespace hpo::trainer
