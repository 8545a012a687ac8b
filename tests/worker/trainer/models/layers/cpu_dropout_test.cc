#include "worker/trainer/models/layers/cpu_dropout.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

torch::Tensor DrawnFrom(uint64_t seed, const torch::Tensor& input, double probability) {
  at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
  generator.set_current_seed(seed);
  return CpuDropout(input, probability);
}

torch::Tensor Ones(at::IntArrayRef sizes) { return at::ones(sizes, at::kFloat); }

TEST(CpuDropout, DropsTheStatedShareAndScalesTheRest) {
  constexpr int64_t kElements = 1'000'003;
  for (const double probability : {0.1, 0.5, 0.9}) {
    const torch::Tensor output = DrawnFrom(1, Ones({kElements}), probability);
    const double kept = output.count_nonzero().item<double>() / kElements;
    EXPECT_NEAR(kept, 1.0 - probability, 5.0 * std::sqrt(0.25 / kElements)) << probability;
    EXPECT_TRUE(output.masked_select(output != 0)
                    .eq(static_cast<float>(1.0 / (1.0 - probability)))
                    .all()
                    .item<bool>());
  }
}

TEST(CpuDropout, ElementsAreIndependentOfTheirNeighbours) {
  constexpr int64_t kRows = 4096;
  const torch::Tensor kept = DrawnFrom(2, Ones({kRows, 256}), 0.5).ne(0).to(at::kDouble);
  for (const int64_t distance : {1, 2, 255}) {
    const double agreeing = kept.narrow(1, 0, 256 - distance)
                                .eq(kept.narrow(1, distance, 256 - distance))
                                .to(at::kDouble)
                                .mean()
                                .item<double>();
    EXPECT_NEAR(agreeing, 0.5, 5.0 * std::sqrt(0.25 / (kRows * (256.0 - distance)))) << distance;
  }
  const double of_rows = kept.narrow(0, 1, kRows - 1)
                             .eq(kept.narrow(0, 0, kRows - 1))
                             .to(at::kDouble)
                             .mean()
                             .item<double>();
  EXPECT_NEAR(of_rows, 0.5, 0.003);
}

TEST(CpuDropout, IsTheSameForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const torch::Tensor input = at::randn({333, 517});
  at::set_num_threads(1);
  const torch::Tensor alone = DrawnFrom(3, input, 0.3);
  at::set_num_threads(4);
  const torch::Tensor together = DrawnFrom(3, input, 0.3);
  at::set_num_threads(threads);
  EXPECT_TRUE(alone.equal(together));
}

TEST(CpuDropout, EachCallDrawsAnew) {
  const torch::Tensor first = DrawnFrom(4, Ones({10'000}), 0.5);
  const torch::Tensor second = CpuDropout(Ones({10'000}), 0.5);
  EXPECT_FALSE(first.equal(second));
  EXPECT_TRUE(first.equal(DrawnFrom(4, Ones({10'000}), 0.5)));
}

TEST(CpuDropout, GradientPassesWhereTheInputDid) {
  const torch::Tensor input = at::randn({100, 77}).requires_grad_();
  const torch::Tensor output = DrawnFrom(5, input, 0.25);
  // Its gradient is neither contiguous nor one.
  const torch::Tensor weights = at::randn({77, 100});
  (output.t() * weights).sum().backward();
  const torch::Tensor kept = output.detach().ne(0).to(at::kFloat) * (1.0F / 0.75F);
  EXPECT_TRUE(input.grad().allclose(kept * weights.t()));
  EXPECT_EQ(input.grad().eq(0).sum().item<int64_t>(), output.eq(0).sum().item<int64_t>());
}

TEST(CpuDropout, KeepsTypesAndTakesAnyLayout) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16}) {
    const torch::Tensor input = at::ones({64, 48}, type).t();
    const torch::Tensor output = DrawnFrom(6, input, 0.5);
    EXPECT_EQ(output.scalar_type(), type);
    EXPECT_EQ(output.sizes(), input.sizes());
    EXPECT_EQ(output.max().item<double>(), 2.0);
    EXPECT_EQ(output.min().item<double>(), 0.0);
  }
  EXPECT_EQ(CpuDropout(Ones({0, 3}), 0.5).numel(), 0);
}

}  // namespace
}  // namespace hpo::trainer
