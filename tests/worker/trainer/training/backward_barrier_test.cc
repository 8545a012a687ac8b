#include "worker/trainer/training/backward_barrier.h"

#include "gtest/gtest.h"
#include "tests/worker/trainer/failing_allocations.h"
#include "tests/worker/trainer/tiny_trial.h"

namespace hpo::trainer {
namespace {

// Forward and backward with branches, so that one may fail while another waits.
void Branches(const torch::Tensor& weight, FailingAllocations& faults, int64_t fail_at) {
  torch::Tensor left = weight;
  torch::Tensor right = weight;
  for (int i = 0; i < 4; ++i) {
    left = at::matmul(left, weight).tanh();
    right = at::matmul(right, weight).sigmoid();
  }
  const torch::Tensor loss = (left * right).sum();
  faults.FailAt(fail_at);
  loss.backward();
}

TEST(DropFailedBackward, FreesWhatAFailedBackwardLeft) {
  DeviceMemory& memory = *TestDevice().memory;
  torch::Tensor weight = at::ones({64, 64}).requires_grad_();
  FailingAllocations faults;
  const Bytes baseline = memory.Read().live;
  int64_t left_behind = 0;
  for (int64_t k = 1;; ++k) {
    bool failed = false;
    try {
      Branches(weight, faults, k);
    } catch (const c10::OutOfMemoryError&) {
      failed = true;
    }
    faults.FailAt(0);
    weight.mutable_grad().reset();
    if (!failed) break;
    if (memory.Read().live > baseline) ++left_behind;
    DropFailedBackward(torch::kCPU);
    EXPECT_EQ(memory.Read().live, baseline) << k;
    EXPECT_EQ(faults.count(), 0) << "it allocates nothing";
  }
  // Where torch itself cleans up one day, this goes to 0 and the barrier can go.
  EXPECT_GT(left_behind, 0);
}

TEST(DropFailedBackward, IsHarmlessWhenNothingFailed) {
  torch::Tensor weight = at::ones({4, 4}).requires_grad_();
  at::matmul(weight, weight).sum().backward();
  const torch::Tensor gradient = weight.grad().clone();
  DropFailedBackward(torch::kCPU);
  EXPECT_TRUE(at::equal(weight.grad(), gradient));
}

}  // namespace
}  // namespace hpo::trainer
