#include "worker/command/metric_reader.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

MetricReader Reader(const std::vector<std::string>& patterns = {}) {
  std::vector<MetricPattern> parsed;
  for (const std::string& text : patterns) parsed.push_back(*ParseMetricPattern(text));
  return MetricReader("acc", parsed);
}

TEST(MetricReader, TakesLinesOfJson) {
  MetricReader reader = Reader();
  EXPECT_FALSE(reader.Take("epoch 1 of 3"));
  EXPECT_FALSE(reader.Take(R"({"loss": 0.5})"));
  const std::optional<Measurement> first = reader.Take(R"( {"acc": 0.5, "loss": 1, "name": "x"} )");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->step, 1);
  EXPECT_THAT(first->metrics, ElementsAre(Pair("acc", 0.5), Pair("loss", 1.0)));
  const std::optional<Measurement> second =
      reader.Take(R"({"acc": 0.75, "step": 200, "epoch": 1.5})");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->step, 200);
  EXPECT_EQ(second->epoch, 1.5);
  EXPECT_THAT(second->metrics, ElementsAre(Pair("acc", 0.75)));
  EXPECT_EQ(reader.Take(R"({"acc": 0.8})")->step, 201);
  EXPECT_THAT(reader.other_metrics(), ElementsAre(Pair("loss", 0.5)));
}

TEST(MetricReader, TakesWhatPythonPrints) {
  MetricReader reader = Reader();
  // transformers 4 and 5.
  EXPECT_THAT(reader.Take("{'acc': 0.9, 'eval_loss': 0.3, 'epoch': 1.0}")->metrics,
              ElementsAre(Pair("acc", 0.9), Pair("eval_loss", 0.3)));
  EXPECT_THAT(reader.Take("{'acc': '0.9125', 'epoch': '2'}")->metrics,
              ElementsAre(Pair("acc", 0.9125)));
  EXPECT_TRUE(std::isnan(reader.Take(R"({"acc": NaN})")->metrics.at("acc")));
  EXPECT_EQ(reader.Take("{'acc': -inf}")->metrics.at("acc"), -INFINITY);
}

TEST(MetricReader, FindsPatterns) {
  MetricReader reader = Reader({"val acc: ([0-9.]+)", "(?P<loss>[0-9.]+) loss"});
  EXPECT_FALSE(reader.Take("0.25 loss"));
  const std::optional<Measurement> measured = reader.Take("step 3, val acc: 0.5");
  ASSERT_TRUE(measured);
  EXPECT_THAT(measured->metrics, ElementsAre(Pair("acc", 0.5), Pair("loss", 0.25)));
  EXPECT_FALSE(reader.Take("val acc: ..."));
}

TEST(MetricReader, RefusesPatternsWithoutANumber) {
  EXPECT_THAT(ParseMetricPattern("acc: (").status().message(), HasSubstr("got 'acc: ('"));
  EXPECT_THAT(ParseMetricPattern("acc").status().message(), HasSubstr("round brackets"));
}

TEST(MetricReader, RecognisesMemoryThatRanOut) {
  const std::vector<std::pair<std::string, bool>> lines = {
      {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.", false},
      {"tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor "
       "with shape[64,512]",
       false},
      {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to "
       "allocate 1 bytes",
       false},
      {"RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", false},
      {"RuntimeError: [enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate "
       "memory: you tried to allocate 1 bytes",
       true},
      {"MemoryError", true},
      {"numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 TiB", true},
  };
  for (const auto& [line, host] : lines) {
    MetricReader reader = Reader();
    reader.Take("Traceback (most recent call last):");
    reader.Take(line);
    reader.Take("done");
    EXPECT_EQ(reader.oom_line(), line);
    EXPECT_EQ(reader.is_host_oom(), host) << line;
  }
  MetricReader reader = Reader();
  reader.Take("grpc: RESOURCE_EXHAUSTED: too many calls");
  EXPECT_EQ(reader.oom_line(), "");
}

TEST(MetricReader, KeepsTheLastLines) {
  MetricReader reader = Reader();
  for (int i = 0; i < 2000; ++i) reader.Take("line " + std::to_string(i));
  const std::string tail = reader.Tail();
  EXPECT_LE(tail.size(), 4096U);
  EXPECT_THAT(tail, testing::EndsWith("line 1998\nline 1999"));
}

}  // namespace
}  // namespace hpo
