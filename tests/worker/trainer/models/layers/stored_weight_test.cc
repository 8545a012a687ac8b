#include "worker/trainer/models/layers/stored_weight.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "worker/trainer/base/autocast.h"
#include "worker/trainer/models/layers/nf4.h"

namespace hpo::trainer {
namespace {

using Type = memory::FrozenType;

std::vector<float> RandomValues(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  torch::manual_seed(11);
  at::from_blob(values.data(), {count}, torch::kFloat32).normal_();
  return values;
}

std::shared_ptr<StoredWeight> Make(Type type, at::IntArrayRef shape) {
  auto weight = std::make_shared<StoredWeight>(
      type, shape, torch::kCPU, type == Type::kNf4 ? Nf4Table(torch::kCPU) : torch::Tensor());
  weight->Store(RandomValues(c10::multiply_integers(shape)));
  return weight;
}

// On the device and on the host they are the same numbers, bit for bit; 5 x 13 is no whole block.
TEST(StoredWeight, ValuesAreWhatIsStored) {
  for (const Type type : {Type::kBFloat16, Type::kNf4}) {
    for (const auto& shape : {std::vector<int64_t>{5, 13}, std::vector<int64_t>{64, 8}}) {
      const auto weight = Make(type, shape);
      const torch::Tensor values = weight->Values(torch::kFloat32);
      EXPECT_EQ(values.sizes(), at::IntArrayRef(shape));
      std::vector<float> host(static_cast<size_t>(values.numel()));
      weight->Load(host);
      EXPECT_TRUE(values.equal(at::from_blob(host.data(), shape, torch::kFloat32)));
      const torch::Tensor half = weight->Values(torch::kBFloat16);
      EXPECT_TRUE(half.equal(values.to(torch::kBFloat16)));
      // What is stored is stored again as it is.
      weight->Store(host);
      EXPECT_TRUE(weight->Values(torch::kFloat32).equal(values));
    }
  }
}

// As of one thread, also where the last block is not full.
TEST(StoredWeight, IsStoredByAllThreadsAlike) {
  constexpr int64_t kElements = 5 * 1024 * memory::kNf4Block + 13;
  const std::vector<float> given = RandomValues(kElements);
  const auto blocks = static_cast<size_t>(Nf4Blocks(kElements));
  std::vector<uint8_t> codes(blocks * memory::kNf4Block / 2);
  std::vector<float> scales(blocks);
  QuantizeNf4(given, codes, scales);
  std::vector<float> expected(given.size());
  DequantizeNf4(codes, scales, expected);
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  const auto weight = Make(Type::kNf4, {kElements});
  at::set_num_threads(threads);
  std::vector<float> stored(given.size());
  weight->Load(stored);
  EXPECT_EQ(stored, expected);
}

TEST(StoredWeight, RoundsByItsType) {
  const std::vector<float> given = RandomValues(64 * 64);
  const torch::Tensor exact =
      at::from_blob(const_cast<float*>(given.data()), {64, 64}, torch::kFloat32);
  const torch::Tensor half = Make(Type::kBFloat16, {64, 64})->Values(torch::kFloat32);
  EXPECT_TRUE(half.equal(exact.to(torch::kBFloat16).to(torch::kFloat32)));
  const torch::Tensor four = Make(Type::kNf4, {64, 64})->Values(torch::kFloat32);
  const double error = (four - exact).norm().item<double>() / exact.norm().item<double>();
  EXPECT_GT(error, 0.05);
  EXPECT_LT(error, 0.12);
}

// The same as a plain layer with these values, forward and backward.
TEST(StoredProduct, IsALinearLayerOfTheStoredValues) {
  for (const Type type : {Type::kBFloat16, Type::kNf4}) {
    for (const bool transposed : {false, true}) {
      const auto weight = Make(type, {16, 24});
      const torch::Tensor values = weight->Values(torch::kFloat32);
      const torch::Tensor matrix = transposed ? values.t() : values;
      const torch::Tensor bias = at::randn({matrix.size(0)});
      const torch::Tensor input = at::randn({3, 5, matrix.size(1)});
      torch::Tensor a = input.clone().set_requires_grad(true);
      torch::Tensor b = input.clone().set_requires_grad(true);
      const torch::Tensor stored = StoredProduct(a, weight, bias, transposed);
      const torch::Tensor plain = at::linear(b, matrix, bias);
      EXPECT_TRUE(at::allclose(stored, plain, 1e-6, 1e-6));
      stored.pow(2).sum().backward();
      plain.pow(2).sum().backward();
      EXPECT_TRUE(at::allclose(a.grad(), b.grad(), 1e-5, 1e-5));
    }
  }
}

TEST(StoredProduct, RunsIn16BitsUnderAutocast) {
  const auto weight = Make(Type::kNf4, {16, 24});
  torch::Tensor input = at::randn({4, 24}).set_requires_grad(true);
  torch::Tensor output;
  {
    const AutocastScope autocast({torch::kCPU, torch::kBFloat16});
    output = StoredProduct(input, weight, {}, /*transposed=*/false);
  }
  EXPECT_EQ(output.scalar_type(), torch::kBFloat16);
  output.to(torch::kFloat32).sum().backward();
  EXPECT_EQ(input.grad().scalar_type(), torch::kFloat32);
  const torch::Tensor expected = weight->Values(torch::kFloat32).sum(0).expand({4, 24});
  EXPECT_TRUE(at::allclose(input.grad(), expected, 2e-2, 5e-2));
}

TEST(StoredProduct, KeepsNothingWithoutAGradientToPassOn) {
  const auto weight = Make(Type::kNf4, {16, 24});
  const torch::Tensor input = at::randn({4, 24});
  EXPECT_FALSE(StoredProduct(input, weight, {}, false).requires_grad());
  const torch::NoGradGuard no_grad;
  const torch::Tensor trained = at::randn({4, 24}).set_requires_grad(true);
  EXPECT_FALSE(StoredProduct(trained, weight, {}, false).requires_grad());
}

}  // namespace
}  // namespace hpo::trainer
