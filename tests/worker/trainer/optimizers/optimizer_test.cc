// What every optimizer promises, and each one's values against the reference's.
#include "worker/trainer/optimizers/optimizer.h"

#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/golden_tensors.h"
#include "worker/trainer/memory/counting_allocator.h"
#include "worker/trainer/optimizers/dynamic_quantization.h"

namespace hpo::trainer {
namespace {

const nlohmann::json& Golden() {
  static const nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(GoldenPath("optimizers.json")));
  return golden;
}

// The formulas of scripts/reference/optimizers.py.
torch::Tensor StartOf(const std::vector<int64_t>& shape) {
  torch::Tensor values = at::empty(shape);
  auto* const data = values.mutable_data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    data[i] = static_cast<float>(std::cos(0.1 * static_cast<double>(i)));
  }
  return values.requires_grad_();
}

torch::Tensor GradientOf(const std::vector<int64_t>& shape, int64_t step) {
  torch::Tensor values = at::empty(shape);
  auto* const data = values.mutable_data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double index = static_cast<double>(i);
    data[i] = static_cast<float>(std::sin(0.37 * index + static_cast<double>(step)) *
                                 std::pow(10.0, static_cast<double>(i % 7 - 4)));
  }
  return values;
}

class TrainedModel {
 public:
  TrainedModel(memory::OptimizerKind kind,
               const std::vector<std::pair<std::string, std::vector<int64_t>>>& shapes)
      : shapes_(shapes) {
    const nlohmann::json& golden = Golden();
    ParameterGroup group{.names = {}, .parameters = {}, .weight_decay = golden["weight_decay"]};
    for (const auto& [name, shape] : shapes_) {
      group.names.push_back(name);
      group.parameters.push_back(StartOf(shape));
    }
    live_before_ = CountingAllocator::Install().live();
    optimizer_ = MakeOptimizer({group}, {.kind = kind,
                                         .beta1 = golden["betas"][0],
                                         .beta2 = golden["betas"][1],
                                         .eps = golden["eps"],
                                         .momentum = golden["momentum"]});
    state_bytes_ = CountingAllocator::Install().live() - live_before_;
  }

  void SetGradients(int64_t step) {
    for (size_t i = 0; i < shapes_.size(); ++i) {
      parameter(i).mutable_grad() = GradientOf(shapes_[i].second, step);
    }
  }

  void Step(int64_t step, double rate) {
    SetGradients(step);
    optimizer_->Step(rate);
  }

  torch::Tensor parameter(size_t i) const { return optimizer_->groups()[0].parameters[i]; }
  Optimizer& optimizer() { return *optimizer_; }
  Bytes state_bytes() const { return state_bytes_; }

 private:
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes_;
  Bytes live_before_;
  Bytes state_bytes_;
  std::unique_ptr<Optimizer> optimizer_;
};

const std::vector<std::pair<std::string, std::vector<int64_t>>> kGoldenShapes = {
    {"matrix", {70, 61}}, {"small", {3, 5}}, {"vector", {9}}};

class EveryOptimizer : public testing::TestWithParam<memory::OptimizerKind> {};

TEST_P(EveryOptimizer, HasTheReferencesValues) {
  const nlohmann::json& golden = Golden();
  TrainedModel trained(GetParam(), kGoldenShapes);
  int64_t step = 0;
  for (const double rate : golden["rates"]) trained.Step(step++, rate);
  EXPECT_EQ(trained.optimizer().num_steps(), step);
  for (size_t i = 0; i < kGoldenShapes.size(); ++i) {
    const std::string& name = kGoldenShapes[i].first;
    SCOPED_TRACE(name);
    ASSERT_EQ(golden["shapes"][name], kGoldenShapes[i].second);
    const torch::Tensor values = trained.parameter(i).detach().view(-1);
    const auto expected =
        golden["after"][std::string(Name(GetParam()))][name].get<std::vector<double>>();
    for (size_t k = 0; k < expected.size(); ++k) {
      const int64_t index = static_cast<int64_t>(k) * golden["every"].get<int64_t>();
      EXPECT_NEAR(values[index].item<double>(), expected[k], 2e-6) << index;
    }
  }
}

// Shapes that are larger than what is computed at once, and not a multiple of anything.
const std::vector<std::pair<std::string, std::vector<int64_t>>> kLargeShapes = {
    {"wide", {3, 100'003}}, {"tall", {40'009, 7}}, {"long", {70'001}}, {"cube", {12, 31, 13}}};

TEST_P(EveryOptimizer, StepAllocatesNothing) {
  TrainedModel trained(GetParam(), kLargeShapes);
  CountingAllocator& allocator = CountingAllocator::Install();
  trained.Step(0, 1e-2);
  trained.SetGradients(1);
  const torch::Tensor before = trained.parameter(1).detach().clone();
  const Bytes live = allocator.live();
  allocator.SetLimit(live);  // not a byte more
  EXPECT_NO_THROW(trained.optimizer().Step(1e-2));
  allocator.SetLimit(Bytes{});
  EXPECT_EQ(allocator.live(), live);
  EXPECT_FALSE(at::equal(trained.parameter(1), before));
}

TEST_P(EveryOptimizer, AllocatesWhatMemorysModelSays) {
  for (const auto& shapes : {kGoldenShapes, kLargeShapes}) {
    const TrainedModel trained(GetParam(), shapes);
    std::vector<memory::ParameterExtent> extents;
    for (const auto& [name, shape] : shapes) {
      int64_t elements = 1;
      for (const int64_t size : shape) elements *= size;
      extents.push_back({.rows = shape[0], .columns = elements / shape[0]});
    }
    Bytes expected;
    for (const int64_t bytes : memory::OptimizerBytes({.kind = GetParam()}, extents)) {
      expected += RoundUp(Bytes{bytes}, CountingAllocator::kGranularity);
    }
    EXPECT_EQ(trained.state_bytes(), expected);
  }
}

// Bit for bit: another optimizer that was given state and parameters goes on as this one does.
TEST_P(EveryOptimizer, ContinuesFromItsState) {
  TrainedModel trained(GetParam(), kGoldenShapes);
  for (int64_t step = 0; step < 3; ++step) trained.Step(step, 1e-2);
  TrainedModel other(GetParam(), kGoldenShapes);
  const std::vector<NamedTensor> state = trained.optimizer().State();
  const std::vector<NamedTensor> target = other.optimizer().State();
  ASSERT_EQ(state.size(), target.size());
  for (size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].first, target[i].first);
    torch::Tensor tensor = target[i].second;
    tensor.copy_(state[i].second);
  }
  other.optimizer().SetNumSteps(3);
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < kGoldenShapes.size(); ++i) other.parameter(i).copy_(trained.parameter(i));
  trained.Step(3, 1e-2);
  other.Step(3, 1e-2);
  for (size_t i = 0; i < kGoldenShapes.size(); ++i) {
    EXPECT_TRUE(at::equal(other.parameter(i), trained.parameter(i))) << kGoldenShapes[i].first;
  }
}

TEST_P(EveryOptimizer, NamesEachStateOnce) {
  TrainedModel trained(GetParam(), kGoldenShapes);
  std::set<std::string> names;
  for (const auto& [name, tensor] : trained.optimizer().State()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(tensor.is_contiguous()) << name;
  }
  EXPECT_GE(names.size(), kGoldenShapes.size());
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimizer,
                         testing::Values(memory::OptimizerKind::kAdamW,
                                         memory::OptimizerKind::kAdamW8bit,
                                         memory::OptimizerKind::kAdafactor,
                                         memory::OptimizerKind::kSgd),
                         [](const auto& kind) { return std::string(Name(kind.param)); });

TEST(Sgd, WithoutMomentumKeepsNothing) {
  ParameterGroup group{.names = {"p"}, .parameters = {StartOf({5})}, .weight_decay = 0.0};
  group.parameters[0].mutable_grad() = at::ones({5});
  const auto optimizer =
      MakeOptimizer({group}, {.kind = memory::OptimizerKind::kSgd, .momentum = 0.0});
  EXPECT_TRUE(optimizer->State().empty());
  optimizer->Step(0.25);
  EXPECT_NEAR(group.parameters[0][0].item<double>(), 0.75, 1e-7);
  EXPECT_TRUE(
      memory::OptimizerBytes({.kind = memory::OptimizerKind::kSgd, .has_momentum = false}, {})
          .empty());
}

TEST(DynamicQuantization, TheMapsAreTheReferences) {
  for (const bool is_signed : {true, false}) {
    const auto expected =
        Golden()["dynamic_map"][is_signed ? "signed" : "unsigned"].get<std::vector<float>>();
    const auto map = DynamicMap(is_signed);
    ASSERT_EQ(expected.size(), map.size());
    for (size_t i = 0; i < map.size(); ++i) EXPECT_FLOAT_EQ(map[i], expected[i]) << i;
  }
}

// What is decoded is the nearest number of the map, times the block's largest magnitude.
TEST(DynamicQuantization, GoesThereAndBackToTheNearestNumber) {
  constexpr int64_t kValues = 2 * memory::kQuantizationBlock;
  const auto float32 = torch::TensorOptions(torch::kFloat32);
  const DynamicCode code = MakeDynamicCode(true, at::empty({memory::kDynamicCodeFloats}, float32));
  const QuantizedTensor quantized = QuantizedZeros(kValues, code);
  const torch::Tensor indices = at::empty({kValues}, float32.dtype(torch::kInt32));
  const torch::Tensor scratch = at::empty({kValues}, float32);
  torch::Tensor values = at::zeros({kValues}, float32);
  Decode(quantized, 0, code, indices, scratch);
  EXPECT_TRUE(at::equal(scratch, values));
  // One block of small numbers with one outlier, one of zeros.
  for (int64_t i = 0; i < memory::kQuantizationBlock; ++i) values[i] = std::sin(0.1 * i) * 1e-3;
  values[7] = -5.0;
  Encode(values, code, indices, scratch, quantized, 0);
  const torch::Tensor decoded = at::empty({kValues}, float32);
  Decode(quantized, 0, code, indices, decoded);
  EXPECT_TRUE(at::equal(decoded.narrow(0, memory::kQuantizationBlock, memory::kQuantizationBlock),
                        at::zeros({memory::kQuantizationBlock})));
  const auto map = DynamicMap(true);
  for (int64_t i = 0; i < memory::kQuantizationBlock; ++i) {
    const double value = values[i].item<double>();
    double nearest = 1e9;
    for (const float number : map) {
      const double candidate = number * 5.0;
      if (std::abs(candidate - value) < std::abs(nearest - value)) nearest = candidate;
    }
    EXPECT_NEAR(std::abs(decoded[i].item<double>() - value), std::abs(nearest - value), 1e-6) << i;
  }
}

}  // namespace
}  // namespace hpo::trainer
