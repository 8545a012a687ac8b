#include "sampler/gp/surrogate/input_space.h"

#include <cmath>

#include "gtest/gtest.h"
#include "sampler/space/model_view.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

ParamValue Text(const char* text) { return std::string(text); }

std::vector<double> PointOf(const CodedSpace& coded, const InputSpace& inputs,
                            const ParamMap& params) {
  return inputs.Point(*coded.Encode(params));
}

TEST(InputSpace, NumbersByPositionAndChoicesByIndex) {
  SearchSpace space;
  space.parameters = {MakeParameter("x", FloatDomain{.low = -5.0, .high = 5.0}),
                      MakeParameter("c", CategoricalDomain{{Text("a"), Text("b"), Text("c")}}),
                      MakeParameter("n", IntDomain{.low = 1, .high = 4}),
                      MakeParameter("seed", IntDomain{.low = 1, .high = 9}),
                      MakeParameter("one", IntDomain{.low = 3, .high = 3})};
  space.parameters[3].modelled = false;
  const CodedSpace coded(space);
  const InputSpace inputs(coded, ModelView::kQuality);
  ASSERT_EQ(inputs.num_axes(), 3u);
  const ParamMap params = {
      {"x", 2.5}, {"c", Text("c")}, {"n", int64_t{2}}, {"seed", int64_t{5}}, {"one", int64_t{3}}};
  EXPECT_EQ(PointOf(coded, inputs, params), (std::vector<double>{0.75, 2.0, 0.375}));
  EXPECT_EQ(inputs.ContinuousAxis(0), 0u);
  for (size_t i = 1; i < 5; ++i) EXPECT_FALSE(inputs.ContinuousAxis(i).has_value());
}

// Two children of one condition share an indicator; one of another has its own.
TEST(InputSpace, InactiveNumbersLieInTheMiddleBesideAnIndicator) {
  SearchSpace space;
  space.parameters = {MakeParameter("opt", CategoricalDomain{{Text("sgd"), Text("adam")}}),
                      MakeParameter("momentum", FloatDomain{}),
                      MakeParameter("nesterov", FloatDomain{}),
                      MakeParameter("beta", FloatDomain{}),
                      MakeParameter("kind", CategoricalDomain{{Text("p"), Text("q")}})};
  const std::vector<Condition> sgd = {{"opt", {Text("sgd")}}};
  const std::vector<Condition> adam = {{"opt", {Text("adam")}}};
  space.parameters[1].when = space.parameters[2].when = sgd;
  space.parameters[3].when = space.parameters[4].when = adam;
  const CodedSpace coded(space);
  const InputSpace inputs(coded, ModelView::kQuality);
  ASSERT_EQ(inputs.num_axes(), 7u);  // five parameters, two indicators
  EXPECT_EQ(PointOf(coded, inputs, {{"opt", Text("sgd")}, {"momentum", 0.9}, {"nesterov", 0.1}}),
            (std::vector<double>{0.0, 0.9, 1.0, 0.1, 0.5, 0.0, -2.0}));
  EXPECT_EQ(PointOf(coded, inputs, {{"opt", Text("adam")}, {"beta", 0.2}, {"kind", Text("q")}}),
            (std::vector<double>{1.0, 0.5, 0.0, 0.5, 0.2, 1.0, 1.0}));
}

TEST(InputSpace, BatchAndAccumulationAreOneAxisForQualityAndTwoForMemory) {
  SearchSpace space;
  space.parameters = {MakeParameter("train.batch_size", IntChoices({8, 16, 32})),
                      MakeParameter("train.grad_accum", IntDomain{.low = 1, .high = 4})};
  const CodedSpace coded(space);
  const InputSpace quality(coded, ModelView::kQuality);
  const InputSpace memory(coded, ModelView::kMemory);
  ASSERT_EQ(quality.num_axes(), 1u);
  ASSERT_EQ(memory.num_axes(), 2u);
  const auto params = [](int64_t batch, int64_t accumulation) {
    return ParamMap{{"train.batch_size", batch}, {"train.grad_accum", accumulation}};
  };
  EXPECT_EQ(PointOf(coded, quality, params(32, 1)), PointOf(coded, quality, params(8, 4)));
  EXPECT_LT(PointOf(coded, quality, params(8, 2))[0], PointOf(coded, quality, params(8, 3))[0]);
  EXPECT_NE(PointOf(coded, memory, params(32, 1)), PointOf(coded, memory, params(8, 4)));
  // A choice taken out of the study since.
  EXPECT_EQ(PointOf(coded, quality, params(64, 1)), std::vector<double>{0.5});
}

}  // namespace
}  // namespace hpo::sampler
