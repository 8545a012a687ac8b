#include "common/models/freezing.h"

#include <string>
#include <vector>

#include "common/study/model_catalog.h"
#include "gtest/gtest.h"

namespace hpo {
namespace {

ModelShape ShapeOf(const char* name) {
  const auto shape = KnownModelShape(name);
  EXPECT_TRUE(shape.has_value()) << name;
  return *shape;
}

int64_t FrozenElements(const ModelShape& shape, const Freezing& freezing) {
  const auto tensors = ParameterTensors(shape, {.kind = TaskHead::Kind::kSequenceClassification});
  EXPECT_TRUE(tensors.ok()) << tensors.status();
  int64_t elements = 0;
  for (const ParameterTensor& tensor : *tensors) {
    if (IsFrozen(tensor, freezing)) elements += tensor.NumElements();
  }
  return elements;
}

// bert-base: 23,837,184 in the embeddings, 7,087,872 in each layer.
TEST(Freezing, CountsBertsEmbeddingsAndLayers) {
  const ModelShape bert = ShapeOf("bert-base-uncased");
  EXPECT_EQ(FrozenElements(bert, {}), 0);
  EXPECT_EQ(FrozenElements(bert, {.embeddings = true}), 23'837'184);
  EXPECT_EQ(FrozenElements(bert, {.layers = 1}), 7'087'872);
  EXPECT_EQ(FrozenElements(bert, {.embeddings = true, .layers = 12}), 23'837'184 + 12 * 7'087'872);
}

// What comes after the layers is trained: a last norm, a table of relative positions.
TEST(Freezing, LeavesWhatFollowsTheLayers) {
  for (const char* name : {"gpt2", "Qwen/Qwen2.5-0.5B", "microsoft/deberta-v3-base"}) {
    const ModelShape shape = ShapeOf(name);
    const auto tensors = ParameterTensors(shape, {.kind = TaskHead::Kind::kSequenceClassification});
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    std::vector<std::string> trained;
    for (const ParameterTensor& tensor : *tensors) {
      if (!IsFrozen(tensor, {.embeddings = true, .layers = shape.num_layers})) {
        trained.push_back(tensor.name);
      }
    }
    ASSERT_FALSE(trained.empty());
    for (const std::string& tensor : trained) {
      EXPECT_EQ(tensor.find(".layer."), std::string::npos) << tensor;
      EXPECT_EQ(tensor.find(".layers."), std::string::npos) << tensor;
    }
  }
}

TEST(Freezing, DebertasConvolutionIsPartOfTheLowestLayer) {
  const ParameterTensor weight{.name = "deberta.encoder.conv.conv.weight", .layer = 24};
  EXPECT_FALSE(IsFrozen(weight, {.embeddings = true}));
  EXPECT_TRUE(IsFrozen(weight, {.layers = 1}));
}

TEST(Freezing, NoMoreLayersThanThereAre) {
  const ModelShape bert = ShapeOf("bert-base-uncased");
  EXPECT_TRUE(CheckFreezing({.embeddings = true, .layers = 12}, bert).ok());
  EXPECT_EQ(CheckFreezing({.layers = 13}, bert).message(),
            "model.freeze_layers: expected at most the 12 layers of the model, got 13");
  EXPECT_EQ(CheckFreezing({.layers = -1}, bert).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace hpo
