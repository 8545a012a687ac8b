#include "worker/trainer/optimizers/parameter_groups.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "worker/trainer/memory/counting_allocator.h"
#include "worker/trainer/models/text_classifier.h"

namespace hpo::trainer {
namespace {

// Parameters of ones, each in a group of its own, with gradients of `gradient`.
std::vector<ParameterGroup> Groups(std::initializer_list<int64_t> sizes, float gradient) {
  std::vector<ParameterGroup> groups;
  for (const int64_t size : sizes) {
    torch::Tensor parameter = at::ones({size}).requires_grad_();
    parameter.mutable_grad() = at::full({size}, gradient);
    groups.push_back({.names = {"p"}, .parameters = {parameter}, .weight_decay = 0.0});
  }
  return groups;
}

double FirstGradient(const ParameterGroup& group) {
  return GradientsOf(group).front()[0].item<double>();
}

TEST(ParameterGroups, ClipsTheJointNorm) {
  const auto groups = Groups({9, 16}, 2.0f);  // norms 6 and 8
  EXPECT_NEAR(ClipGradients(groups, std::numeric_limits<double>::infinity()), 10.0, 1e-5);
  EXPECT_NEAR(FirstGradient(groups[0]), 2.0, 1e-6);
  EXPECT_NEAR(ClipGradients(groups, 5.0), 10.0, 1e-5);
  EXPECT_NEAR(FirstGradient(groups[0]), 1.0, 1e-5);
  EXPECT_NEAR(FirstGradient(groups[1]), 1.0, 1e-5);
  EXPECT_NEAR(ClipGradients(groups, 7.0), 5.0, 1e-4);
  EXPECT_NEAR(FirstGradient(groups[0]), 1.0, 1e-5);
}

TEST(ParameterGroups, DividesTheLossScaleOut) {
  auto groups = Groups({9, 16}, 2048.0f);
  EXPECT_NEAR(ClipGradients(groups, 100.0, 1024.0), 10.0, 1e-5);
  EXPECT_NEAR(FirstGradient(groups[1]), 2.0, 1e-6);
  groups = Groups({9, 16}, 2048.0f);
  EXPECT_NEAR(ClipGradients(groups, 5.0, 1024.0), 10.0, 1e-5);
  EXPECT_NEAR(FirstGradient(groups[1]), 1.0, 1e-5);
  groups = Groups({4}, std::numeric_limits<float>::infinity());
  EXPECT_FALSE(std::isfinite(ClipGradients(groups, 5.0, 1024.0)));
}

TEST(ParameterGroups, AGradientThatIsNotFiniteHasSuchANorm) {
  const auto groups = Groups({4}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(std::isfinite(ClipGradients(groups, 1.0)));
}

TEST(ParameterGroups, ClippingWithoutReadingIsTheSameBitForBit) {
  for (const double max_norm :
       {0.37, 9.9999999, 10.0, 11.0, std::numeric_limits<double>::infinity()}) {
    SCOPED_TRACE(max_norm);
    const auto read = Groups({9, 16}, 2.0f);
    const auto unread = Groups({9, 16}, 2.0f);
    const double norm = ClipGradients(read, max_norm);
    EXPECT_EQ(ClipGradientsUnread(unread, max_norm).item<double>(), norm);
    for (size_t i = 0; i < read.size(); ++i) {
      EXPECT_TRUE(at::equal(GradientsOf(read[i]).front(), GradientsOf(unread[i]).front()));
    }
  }
}

TEST(ParameterGroups, ClippingWithoutReadingHidesNothing) {
  const auto groups = Groups({4}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_FALSE(std::isfinite(ClipGradientsUnread(groups, 1.0).item<double>()));
}

TEST(ParameterGroups, ClearGradientsFreesThem) {
  CountingAllocator& allocator = CountingAllocator::Install();
  auto groups = Groups({1000}, 0.0f);
  ClearGradients(groups);
  const Bytes live = allocator.live();
  (groups[0].parameters[0] * 2).sum().backward();
  EXPECT_GT(allocator.live(), live);
  ClearGradients(groups);
  EXPECT_EQ(allocator.live(), live);
}

std::shared_ptr<TextClassifier> SmallModel() {
  ModelShape shape;
  shape.family = "bert";
  shape.vocab_size = 10;
  shape.hidden_size = 8;
  shape.num_layers = 1;
  shape.num_heads = 2;
  shape.intermediate_size = 16;
  shape.max_positions = 6;
  shape.type_vocab_size = 2;
  auto model = MakeTextClassifier(shape, {.num_labels = 2}, torch::kCPU);
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

TEST(DecayGroups, BiasesAndLayerNormDoNotDecay) {
  const auto model = SmallModel();
  const auto groups = DecayGroups(*model, 0.3);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].weight_decay, 0.3);
  EXPECT_EQ(groups[1].weight_decay, 0.0);
  // 3 embeddings, 6 dense weights, pooler, classifier; everything else is one-dimensional.
  EXPECT_EQ(groups[0].parameters.size(), 11u);
  for (const torch::Tensor& parameter : groups[0].parameters) EXPECT_EQ(parameter.dim(), 2);
  for (const torch::Tensor& parameter : groups[1].parameters) EXPECT_EQ(parameter.dim(), 1);
  EXPECT_EQ(groups[0].parameters.size() + groups[1].parameters.size(), model->parameters().size());
}

TEST(DecayGroups, NamesEachParameterAndLeavesFrozenOnesOut) {
  const auto model = SmallModel();
  auto parameters = model->named_parameters();
  parameters["bert.embeddings.word_embeddings.weight"].set_requires_grad(false);
  const auto groups = DecayGroups(*model, 0.3);
  EXPECT_EQ(groups[0].parameters.size(), 10u);
  for (const ParameterGroup& group : groups) {
    ASSERT_EQ(group.names.size(), group.parameters.size());
    for (size_t i = 0; i < group.names.size(); ++i) {
      EXPECT_TRUE(group.parameters[i].is_same(parameters[group.names[i]])) << group.names[i];
    }
  }
}

}  // namespace
}  // namespace hpo::trainer
