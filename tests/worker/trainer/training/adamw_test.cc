#include "worker/trainer/training/adamw.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "worker/trainer/memory/counting_allocator.h"
#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/models/weights.h"

namespace hpo {
namespace {

// A parameter of ones with a gradient of `gradient`.
torch::Tensor Parameter(int64_t size, float gradient) {
  torch::Tensor parameter = at::ones({size}).requires_grad_();
  parameter.mutable_grad() = at::full({size}, gradient);
  return parameter;
}

TEST(AdamW, MatchesTheFormulaOverThreeSteps) {
  torch::Tensor parameter = Parameter(3, 0.5f);
  AdamW optimizer({{{parameter}, 0.1}}, {.beta1 = 0.8, .beta2 = 0.9, .eps = 1e-6});
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
  torch::Tensor decayed = Parameter(100000, 0.1f);
  torch::Tensor plain = Parameter(777, -0.1f);
  AdamW optimizer({{{decayed}, 0.01}, {{plain}, 0.0}}, {});
  const Bytes live = allocator.live();
  allocator.SetLimit(live);  // not a byte more
  EXPECT_NO_THROW(optimizer.Step(1e-2));
  EXPECT_NO_THROW(optimizer.Step(1e-2));
  allocator.SetLimit(Bytes{});
  EXPECT_EQ(allocator.live(), live);
  EXPECT_LT(decayed[5].item<float>(), 1.0f);
  EXPECT_GT(plain[5].item<float>(), 1.0f);
}

TEST(AdamW, ClipsTheJointNorm) {
  torch::Tensor a = Parameter(9, 2.0f);   // norm 6
  torch::Tensor b = Parameter(16, 2.0f);  // norm 8
  AdamW optimizer({{{a}, 0.0}, {{b}, 0.0}}, {});
  EXPECT_NEAR(optimizer.ClipGradients(std::numeric_limits<double>::infinity()), 10.0, 1e-5);
  EXPECT_NEAR(a.grad()[0].item<double>(), 2.0, 1e-6);
  EXPECT_NEAR(optimizer.ClipGradients(5.0), 10.0, 1e-5);
  EXPECT_NEAR(a.grad()[0].item<double>(), 1.0, 1e-5);
  EXPECT_NEAR(b.grad()[0].item<double>(), 1.0, 1e-5);
  EXPECT_NEAR(optimizer.ClipGradients(7.0), 5.0, 1e-4);
  EXPECT_NEAR(a.grad()[0].item<double>(), 1.0, 1e-5);
}

TEST(AdamW, AGradientThatIsNotFiniteHasSuchANorm) {
  torch::Tensor a = Parameter(4, std::numeric_limits<float>::quiet_NaN());
  AdamW optimizer({{{a}, 0.0}}, {});
  EXPECT_FALSE(std::isfinite(optimizer.ClipGradients(1.0)));
}

TEST(AdamW, ClearGradientsFreesThem) {
  CountingAllocator& allocator = CountingAllocator::Install();
  torch::Tensor parameter = at::ones({1000}).requires_grad_();
  AdamW optimizer({{{parameter}, 0.0}}, {});
  const Bytes live = allocator.live();
  (parameter * 2).sum().backward();
  EXPECT_GT(allocator.live(), live);
  optimizer.ClearGradients();
  EXPECT_EQ(allocator.live(), live);
}

TEST(DecayGroups, BiasesAndLayerNormDoNotDecay) {
  ModelShape shape;
  shape.family = "bert";
  shape.vocab_size = 10;
  shape.hidden_size = 8;
  shape.num_layers = 1;
  shape.num_heads = 2;
  shape.intermediate_size = 16;
  shape.max_positions = 6;
  shape.type_vocab_size = 2;
  const auto model = MakeTextClassifier(shape, {.num_labels = 2}, torch::kCPU);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto groups = DecayGroups(**model, 0.3);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].weight_decay, 0.3);
  EXPECT_EQ(groups[1].weight_decay, 0.0);
  // 3 embeddings, 6 dense weights, pooler, classifier; everything else is one-dimensional.
  EXPECT_EQ(groups[0].parameters.size(), 11u);
  for (const torch::Tensor& parameter : groups[0].parameters) EXPECT_EQ(parameter.dim(), 2);
  for (const torch::Tensor& parameter : groups[1].parameters) EXPECT_EQ(parameter.dim(), 1);
  EXPECT_EQ(groups[0].parameters.size() + groups[1].parameters.size(),
            (*model)->parameters().size());
}

}  // namespace
}  // namespace hpo
