#include "worker/trainer/training/step_scalars.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "worker/trainer/memory/counting_allocator.h"

namespace hpo::trainer {
namespace {

torch::Tensor Scalar(double value) {
  return at::full({}, value, torch::TensorOptions(torch::kFloat32));
}

TEST(StepScalars, GivesBackEveryStepOnce) {
  StepScalars scalars(torch::kCPU);
  EXPECT_TRUE(scalars.Take().empty());
  scalars.Add(Scalar(0.1), Scalar(3.0));
  scalars.Add(Scalar(-2.0), Scalar(std::numeric_limits<double>::infinity()));
  const auto steps = scalars.Take();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].loss, Scalar(0.1).item<double>());
  EXPECT_EQ(steps[0].norm, 3.0);
  EXPECT_EQ(steps[1].loss, -2.0);
  EXPECT_TRUE(std::isinf(steps[1].norm));
  EXPECT_TRUE(scalars.Take().empty());
  scalars.Add(Scalar(5.0), Scalar(6.0));
  ASSERT_EQ(scalars.Take().size(), 1u);
}

TEST(StepScalars, HoldsSoManyAndAllocatesNoneOfThem) {
  CountingAllocator& allocator = CountingAllocator::Install();
  const torch::Tensor loss = Scalar(1.0);
  const Bytes before = allocator.live();
  StepScalars scalars(torch::kCPU);
  EXPECT_EQ(allocator.live() - before, KiB(2));
  allocator.ResetPeak();
  for (int64_t i = 0; i < StepScalars::kCapacity; ++i) {
    EXPECT_FALSE(scalars.full());
    scalars.Add(loss, loss);
  }
  EXPECT_TRUE(scalars.full());
  EXPECT_EQ(allocator.peak() - before, KiB(2));
  EXPECT_EQ(static_cast<int64_t>(scalars.Take().size()), StepScalars::kCapacity);
  EXPECT_FALSE(scalars.full());
}

}  // namespace
}  // namespace hpo::trainer
