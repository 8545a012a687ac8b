#include "worker/trainer/memory/oom_guard.h"

#include <new>
#include <stdexcept>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {
namespace {

class OomGuardTest : public testing::Test {
 protected:
  ~OomGuardTest() override { memory_.SetLimit(Bytes{}); }

  DeviceMemory& memory_ = *TestDevice().memory;
  const Bytes baseline_ = memory_.Read().live;
};

TEST_F(OomGuardTest, ABatchThatFitsRunsOnceAndDropsNothing) {
  int runs = 0;
  int drops = 0;
  const BatchAttempt attempt = TryBatch(
      memory_, baseline_, [&] { ++runs; }, [&] { ++drops; });
  EXPECT_FALSE(attempt.fault.has_value());
  EXPECT_TRUE(attempt.clean);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(drops, 0);
}

TEST_F(OomGuardTest, AfterAnOutOfMemoryErrorEverythingIsFree) {
  memory_.SetLimit(baseline_ + MiB(1));
  memory_.ResetPeak();
  std::vector<torch::Tensor> kept;  // outlives the batch, as gradients do
  const auto batch = [&] {
    const torch::Tensor weight = at::ones({256, 256}).requires_grad_();
    kept.push_back(weight);
    torch::Tensor value = weight;
    for (int i = 0; i < 100; ++i) value = at::matmul(value, weight).tanh();  // keeps every result
  };
  const BatchAttempt attempt = TryBatch(memory_, baseline_, batch, [&] { kept.clear(); });
  ASSERT_TRUE(attempt.fault.has_value());
  EXPECT_EQ(attempt.fault->type, MemoryFaultType::kDevice);
  EXPECT_TRUE(attempt.clean);
  EXPECT_EQ(memory_.Read().live, baseline_);
  ASSERT_TRUE(attempt.fault->refused.has_value());
  EXPECT_EQ(attempt.fault->refused->requested, KiB(256));
  EXPECT_EQ(attempt.fault->refused->limit, baseline_ + MiB(1));
  EXPECT_GT(attempt.use.peak, baseline_ + KiB(512));
  EXPECT_EQ(attempt.use.live + attempt.use.free, attempt.use.total) << "of one moment";
}

TEST_F(OomGuardTest, AnErrorInsideBackwardFreesTheGraph) {
  const torch::Tensor weight = at::ones({128, 128}).requires_grad_();
  const Bytes baseline = memory_.Read().live;
  const auto batch = [&] {
    torch::Tensor value = weight;
    for (int i = 0; i < 10; ++i) value = at::matmul(value, weight).tanh();
    const torch::Tensor loss = value.sum();
    memory_.SetLimit(memory_.Read().live + KiB(100));  // backward has no room
    loss.backward();
  };
  torch::Tensor parameter = weight;
  const BatchAttempt attempt =
      TryBatch(memory_, baseline, batch, [&] { parameter.mutable_grad().reset(); });
  ASSERT_TRUE(attempt.fault.has_value());
  EXPECT_TRUE(attempt.clean);
  EXPECT_EQ(memory_.Read().live, baseline);
}

TEST_F(OomGuardTest, WhatIsNotDroppedMakesTheProcessUnclean) {
  memory_.SetLimit(baseline_ + MiB(1));
  std::vector<torch::Tensor> leaked;
  const BatchAttempt attempt = TryBatch(
      memory_, baseline_,
      [&] {
        for (int i = 0; i < 1000; ++i) leaked.push_back(at::ones({1000}));
      },
      [] {});
  EXPECT_TRUE(attempt.fault.has_value());
  EXPECT_FALSE(attempt.clean);
}

TEST_F(OomGuardTest, OtherErrorsPassThroughUntouched) {
  bool dropped = false;
  EXPECT_THROW(
      TryBatch(
          memory_, baseline_, [] { throw std::logic_error("bug"); }, [&] { dropped = true; }),
      std::logic_error);
  EXPECT_FALSE(dropped);
}

TEST_F(OomGuardTest, HostMemoryIsToldApart) {
  const BatchAttempt attempt = TryBatch(
      memory_, baseline_, [] { throw std::bad_alloc(); }, [] {});
  ASSERT_TRUE(attempt.fault.has_value());
  EXPECT_EQ(attempt.fault->type, MemoryFaultType::kHost);
  EXPECT_FALSE(attempt.fault->refused.has_value());
}

TEST_F(OomGuardTest, ALostDeviceIsNotTouchedAgain) {
  bool dropped = false;
  const BatchAttempt attempt = TryBatch(
      memory_, baseline_,
      [] {
        throw c10::Error({"f", "file.cc", 1}, "CUDA error: device-side assert triggered");
      },
      [&] { dropped = true; });
  ASSERT_TRUE(attempt.fault.has_value());
  EXPECT_EQ(attempt.fault->type, MemoryFaultType::kDeviceLost);
  EXPECT_FALSE(attempt.clean);
  EXPECT_FALSE(dropped);
}

TEST_F(OomGuardTest, AnOldRefusalIsNotTakenForThisBatchs) {
  memory_.SetLimit(baseline_ + KiB(1));
  EXPECT_THROW(at::empty({1000}), c10::OutOfMemoryError);
  const BatchAttempt attempt = TryBatch(
      memory_, baseline_, [] { throw std::bad_alloc(); }, [] {});
  EXPECT_FALSE(attempt.fault->refused.has_value());
}

}  // namespace
}  // namespace hpo::trainer
