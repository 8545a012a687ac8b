#include "worker/trainer/memory/allocator_log.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"

namespace hpo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

TEST(AllocatorTrace, ReadsWhatItWrites) {
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
  const std::string text = FormatTrace(events, {"card: H200"});
  EXPECT_THAT(text, HasSubstr("hpo-trace 1\n# card: H200\nS 2097152\n+ 0 4096\n+ 1 512 3\n- 0\n"));
  const auto again = ParseTrace(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, events);
}

TEST(AllocatorTrace, NamesTheLineThatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 1: expected 'hpo-trace 1'"},
      {"hpo-trace 2\n", "line 1: expected 'hpo-trace 1'"},
      {"hpo-trace 1\n+ 1\n", "line 2: expected an event such as '+ 3 4096', got '+ 1'"},
      {"hpo-trace 1\n# about\n- x\n", "line 3"},
      {"hpo-trace 1\n+ 1 -4\n", "line 2"},
      {"hpo-trace 1\nS 1 2 3 4\n", "line 2"},
      {"hpo-trace 1\n? 1\n", "line 2"},
  };
  for (const auto& [text, message] : cases) {
    const auto events = ParseTrace(text);
    EXPECT_THAT(std::string(events.status().message()), HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace hpo
