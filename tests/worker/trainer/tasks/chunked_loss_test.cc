#include "worker/trainer/tasks/chunked_loss.h"

#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"

namespace hpo::trainer {
namespace {

constexpr int64_t kRows = 50;
constexpr int64_t kWidth = 16;
constexpr int64_t kClasses = 3000;

class ChunkedLossTest : public testing::Test {
 protected:
  void SetUp() override {
    at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
    generator.set_current_seed(2);
    features_ = at::randn({kRows, kWidth}).requires_grad_();
    weight_ = (at::randn({kClasses, kWidth}) * 0.1).requires_grad_();
    labels_ = at::arange(kRows).mul_(53);
    labels_[3] = kIgnoredLabel;
    labels_.narrow(0, 20, 10).fill_(kIgnoredLabel);
  }

  torch::Tensor Loss(int64_t rows_at_once) const {
    return ChunkedCrossEntropy(
        features_, labels_,
        [this](const torch::Tensor& features) { return at::linear(features, weight_); },
        rows_at_once);
  }

  DeviceMemory& memory_ = *TestDevice().memory;
  torch::Tensor features_;
  torch::Tensor weight_;
  torch::Tensor labels_;
};

TEST_F(ChunkedLossTest, IsTheLossOfAllLogits) {
  const torch::Tensor expected = at::cross_entropy_loss(at::linear(features_, weight_), labels_, {},
                                                        at::Reduction::Sum, kIgnoredLabel);
  expected.backward();
  const torch::Tensor feature_gradient = features_.grad().clone();
  const torch::Tensor weight_gradient = weight_.grad().clone();
  for (const int64_t rows_at_once : {1, 7, 10, 50, 1000}) {
    SCOPED_TRACE(rows_at_once);
    features_.mutable_grad().reset();
    weight_.mutable_grad().reset();
    const torch::Tensor loss = Loss(rows_at_once);
    EXPECT_NEAR(loss.item<double>(), expected.item<double>(), 1e-5 * expected.item<double>());
    loss.backward();
    EXPECT_TRUE(at::allclose(features_.grad(), feature_gradient, 1e-4, 1e-6));
    EXPECT_TRUE(at::allclose(weight_.grad(), weight_gradient, 1e-4, 1e-6));
  }
}

TEST_F(ChunkedLossTest, NeverHoldsAllLogits) {
  constexpr int64_t kAtOnce = 5;
  const Bytes logits{4 * kRows * kClasses};
  // The weight's gradient, and one on its way into it.
  const Bytes gradients{2 * 4 * kClasses * kWidth};
  const Bytes before = memory_.Read().live;
  memory_.ResetPeak();
  Loss(kAtOnce).backward();
  const Bytes chunked = memory_.Read().peak - before;
  EXPECT_LE(chunked, gradients + Bytes{12 * kAtOnce * kClasses} + KiB(16));
  EXPECT_LT(chunked, logits);
}

TEST_F(ChunkedLossTest, WithoutGradientsItIsOnlyASum) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor loss = Loss(7);
  EXPECT_FALSE(loss.requires_grad());
  EXPECT_GT(loss.item<double>(), 0.0);
}

}  // namespace
}  // namespace hpo::trainer
