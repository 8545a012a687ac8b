#include "worker/trainer/optimizers/adamw.h"

#include <cmath>

#include "gtest/gtest.h"
#include "worker/trainer/memory/counting_allocator.h"

namespace hpo::trainer {
namespace {

// A parameter of ones with a gradient of `gradient`.
torch::Tensor TrainedTensor(int64_t size, float gradient) {
  torch::Tensor parameter = at::ones({size}).requires_grad_();
  parameter.mutable_grad() = at::full({size}, gradient);
  return parameter;
}

ParameterGroup GroupOf(const torch::Tensor& parameter, double weight_decay) {
  return {.names = {"p"}, .parameters = {parameter}, .weight_decay = weight_decay};
}

TEST(AdamW, MatchesTheFormulaOverThreeSteps) {
  torch::Tensor parameter = TrainedTensor(3, 0.5f);
  AdamW optimizer({GroupOf(parameter, 0.1)}, {.beta1 = 0.8, .beta2 = 0.9, .eps = 1e-6});
  double expected = 1.0;
  double first = 0.0;
  double second = 0.0;
  const double rates[] = {0.01, 0.02, 0.005};
  for (int step = 1; step <= 3; ++step) {
    const double rate = rates[step - 1];
    optimizer.Step(rate);
    first = 0.8 * first + 0.2 * 0.5;
    second = 0.9 * second + 0.1 * 0.25;
    expected *= 1.0 - rate * 0.1;
    expected -= rate * (first / (1.0 - std::pow(0.8, step))) /
                (std::sqrt(second / (1.0 - std::pow(0.9, step))) + 1e-6);
    EXPECT_NEAR(parameter[1].item<double>(), expected, 1e-6) << step;
  }
}

TEST(AdamW, StepAllocatesNothing) {
  CountingAllocator& allocator = CountingAllocator::Install();
  torch::Tensor decayed = TrainedTensor(100000, 0.1f);
  torch::Tensor plain = TrainedTensor(777, -0.1f);
  AdamW optimizer({GroupOf(decayed, 0.01), GroupOf(plain, 0.0)}, {});
  const Bytes live = allocator.live();
  allocator.SetLimit(live);  // not a byte more
  EXPECT_NO_THROW(optimizer.Step(1e-2));
  EXPECT_NO_THROW(optimizer.Step(1e-2));
  allocator.SetLimit(Bytes{});
  EXPECT_EQ(allocator.live(), live);
  EXPECT_LT(decayed[5].item<float>(), 1.0f);
  EXPECT_GT(plain[5].item<float>(), 1.0f);
}

// Bit for bit: another optimizer that was given state and parameters goes on as this one does.
TEST(AdamW, ContinuesFromItsState) {
  torch::Tensor trained = TrainedTensor(5, 0.3f);
  AdamW optimizer({GroupOf(trained, 0.01)}, {});
  for (int step = 0; step < 3; ++step) optimizer.Step(1e-2);
  torch::Tensor copy = trained.detach().clone().requires_grad_();
  copy.mutable_grad() = trained.grad();
  AdamW other({GroupOf(copy, 0.01)}, {});
  const std::vector<NamedTensor> state = optimizer.State();
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state[0].first, "p.exp_avg");
  EXPECT_EQ(state[1].first, "p.exp_avg_sq");
  for (size_t i = 0; i < state.size(); ++i) other.State()[i].second.copy_(state[i].second);
  other.SetNumSteps(optimizer.num_steps());
  optimizer.Step(1e-2);
  other.Step(1e-2);
  EXPECT_EQ(other.num_steps(), 4);
  EXPECT_TRUE(at::equal(copy, trained));
}

}  // namespace
}  // namespace hpo::trainer
