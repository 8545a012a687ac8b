#include "worker/trainer/memory/allocator_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/memory/open_device.h"
#include "worker/trainer/memory/trace_text.h"

namespace hpo::trainer {
namespace {

using testing::ElementsAre;

TEST(AllocatorLog, NumbersBlocksAsTheyAppear) {
  TestDevice();
  const torch::Tensor older = at::empty({16});
  auto log = OpenAllocatorLog("cpu");
  ASSERT_TRUE(log.ok()) << log.status();
  torch::Tensor first = at::empty({16});
  torch::Tensor second = at::empty({100});
  first.reset();
  EXPECT_THAT((*log)->Take(), ElementsAre(AllocatorEvent{.kind = '+', .block = 0, .bytes = 64},
                                          AllocatorEvent{.kind = '+', .block = 1, .bytes = 448},
                                          AllocatorEvent{.kind = '-', .block = 0}));
  second.reset();
  first = at::empty({16});
  EXPECT_THAT((*log)->Take(), ElementsAre(AllocatorEvent{.kind = '-', .block = 1},
                                          AllocatorEvent{.kind = '+', .block = 2, .bytes = 64}));
}

TEST(AllocatorTrace, HasAnEventALine) {
  const std::vector<AllocatorEvent> events = {
      {.kind = 'S', .bytes = 2097152},
      {.kind = '+', .block = 0, .bytes = 4096},
      {.kind = '+', .block = 1, .bytes = 512, .stream = 3},
      {.kind = '-', .block = 0},
      {.kind = 'M', .bytes = 20971520},
      {.kind = 'm', .bytes = 20971520},
      {.kind = '!', .bytes = 99},
      {.kind = 's', .bytes = 2097152},
  };
  EXPECT_EQ(FormatTrace(events, {"card: H200"}),
            "hpo-trace 1\n# card: H200\nS 2097152\n+ 0 4096\n+ 1 512 3\n- 0\nM 20971520\n"
            "m 20971520\n! 99\ns 2097152\n");
}

}  // namespace
}  // namespace hpo::trainer
