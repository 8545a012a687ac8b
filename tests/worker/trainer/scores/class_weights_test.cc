#include "worker/trainer/scores/class_weights.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

const std::vector<std::string> kLabels = {"a", "b", "c"};

// Rows of one label each, or of several.
text::EncodedDataset Rows(const std::vector<std::vector<int32_t>>& labels,
                          bool multi_label = false) {
  text::EncodedDataset data;
  data.num_labels = 3;
  data.multi_label = multi_label;
  data.token_offsets = {0};
  data.label_offsets = {0};
  for (const auto& row : labels) {
    data.labels.insert(data.labels.end(), row.begin(), row.end());
    data.token_offsets.push_back(0);
    data.label_offsets.push_back(static_cast<int64_t>(data.labels.size()));
  }
  return data;
}

TEST(ParseClassWeightsTest, ReadsAllThreeKinds) {
  EXPECT_EQ(ParseClassWeights("none")->kind, ClassWeightSpec::Kind::kNone);
  EXPECT_EQ(ParseClassWeights("balanced")->kind, ClassWeightSpec::Kind::kBalanced);
  const auto by_label = ParseClassWeights("no=1, x=y =2.5,3=1e-2");
  ASSERT_TRUE(by_label.ok()) << by_label.status();
  EXPECT_EQ(by_label->kind, ClassWeightSpec::Kind::kByLabel);
  EXPECT_THAT(by_label->by_label, ElementsAre(Pair("3", 0.01), Pair("no", 1.0), Pair("x=y", 2.5)));
}

TEST(ParseClassWeightsTest, WhatIsNoneIsRefusedInOneLine) {
  for (const char* text : {"", "Balanced", "a", "a=", "a=x", "a=0", "a=-1", "a=nan", "a=inf", "=1",
                           "a=1,a=2", "a=1,"}) {
    const auto spec = ParseClassWeights(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_THAT(std::string(spec.status().message()),
                HasSubstr("expected none, balanced, or weights above 0 by label"));
  }
}

// sklearn.utils.class_weight.compute_class_weight("balanced", ...) of the same labels.
TEST(ClassWeightsTest, BalancedIsScikitLearns) {
  const auto weights = ClassWeights({.kind = ClassWeightSpec::Kind::kBalanced}, kLabels,
                                    Rows({{0}, {0}, {0}, {1}, {2}, {2}}));
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_THAT(*weights, ElementsAre(FloatEq(6.0f / 9.0f), FloatEq(2.0f), FloatEq(1.0f)));
}

TEST(ClassWeightsTest, ALabelThatNoRowHasCountsForNothing) {
  const auto weights =
      ClassWeights({.kind = ClassWeightSpec::Kind::kBalanced}, kLabels, Rows({{0}, {0}, {0}, {2}}));
  EXPECT_THAT(*weights, ElementsAre(FloatEq(4.0f / 6.0f), FloatEq(1.0f), FloatEq(2.0f)));
}

// -100: a query for spans, which has no class.
TEST(ClassWeightsTest, ARowWithoutALabelCountsForNothing) {
  const auto weights = ClassWeights({.kind = ClassWeightSpec::Kind::kBalanced}, kLabels,
                                    Rows({{0}, {-100}, {0}, {-100}, {0}, {2}}));
  EXPECT_THAT(*weights, ElementsAre(FloatEq(4.0f / 6.0f), FloatEq(1.0f), FloatEq(2.0f)));
}

TEST(ClassWeightsTest, WithSeveralLabelsARowBalancedIsNegativesOverPositives) {
  const auto weights = ClassWeights({.kind = ClassWeightSpec::Kind::kBalanced}, kLabels,
                                    Rows({{0}, {0, 1}, {0}, {0}}, /*multi_label=*/true));
  // Of every row, of one row in four, of none.
  EXPECT_THAT(*weights, ElementsAre(FloatEq(0.25f), FloatEq(3.0f), FloatEq(1.0f)));
}

TEST(ClassWeightsTest, NamedLabelsWeighWhatIsSaidOthersOne) {
  const auto weights = ClassWeights(*ParseClassWeights("c=2.5"), kLabels, Rows({{0}, {1}}));
  EXPECT_THAT(*weights, ElementsAre(1.0f, 1.0f, 2.5f));
  EXPECT_THAT(*ClassWeights({}, kLabels, Rows({{0}, {1}})), IsEmpty());
  const auto unknown = ClassWeights(*ParseClassWeights("d=2"), kLabels, Rows({{0}, {1}}));
  EXPECT_EQ(unknown.status().message(),
            "train.class_weights: expected labels of the task (a, b, c), got 'd'");
}

}  // namespace
}  // namespace hpo::trainer
