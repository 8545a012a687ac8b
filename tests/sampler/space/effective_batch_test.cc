#include "sampler/space/effective_batch.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"
#include "sampler/space/model_view.h"
#include "sampler/tpe/model_space.h"
#include "tests/sampler/parzen_of.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

SearchSpace BatchSpace() {
  SearchSpace space;
  space.parameters = {
      MakeParameter("model.name", CategoricalDomain{{std::string("base"), std::string("large")}}),
      MakeParameter(kBatchSizeParameter, IntChoices({8, 12, 16, 24, 32, 48, 64})),
      MakeParameter("train.lr", FloatDomain{.low = 1e-6, .high = 1e-4, .log = true}),
      MakeParameter(kGradAccumParameter, IntChoices({1, 2, 3, 4, 6, 8}))};
  space.model_facts["large"] = {{kModelClassFact, std::string("heavy")}};
  space.narrowings = {
      {{{kModelClassFact, {std::string("heavy")}}}, kBatchSizeParameter, IntChoices({8, 12, 16})},
      {{{kModelClassFact, {std::string("heavy")}}}, kGradAccumParameter, IntChoices({1, 2, 3, 4})}};
  return space;
}

TEST(EffectiveBatch, IsFoundWhereBothAreFewPositiveIntegers) {
  const auto pair = FindEffectiveBatch(BatchSpace());
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->first, 1u);
  EXPECT_EQ(pair->second, 3u);

  SearchSpace missing = BatchSpace();
  missing.parameters.pop_back();
  EXPECT_FALSE(FindEffectiveBatch(missing).has_value());
  SearchSpace drawn = BatchSpace();
  drawn.parameters[1].modelled = false;
  EXPECT_FALSE(FindEffectiveBatch(drawn).has_value());
  SearchSpace conditional = BatchSpace();
  conditional.parameters[3].when = {{"model.name", {std::string("base")}}};
  EXPECT_FALSE(FindEffectiveBatch(conditional).has_value());
  SearchSpace wide = BatchSpace();
  wide.parameters[1].domain = IntDomain{.low = 1, .high = 1000};
  EXPECT_FALSE(FindEffectiveBatch(wide).has_value());
  SearchSpace zero = BatchSpace();
  zero.parameters[3].domain = IntDomain{.low = 0, .high = 4};
  EXPECT_FALSE(FindEffectiveBatch(zero).has_value());
  SearchSpace constant = BatchSpace();
  constant.parameters[1].domain = IntChoices({8});
  constant.parameters[3].domain = IntChoices({1});
  EXPECT_FALSE(FindEffectiveBatch(constant).has_value());
}

TEST(EffectiveBatch, EqualProductsAreOnePointOfQualityAndTwoOfMemory) {
  const SearchSpace space = BatchSpace();
  const ParamMap wide = {{kBatchSizeParameter, int64_t{48}}, {kGradAccumParameter, int64_t{1}}};
  const ParamMap parts = {{kBatchSizeParameter, int64_t{8}}, {kGradAccumParameter, int64_t{6}}};
  const ModelSpace quality(space, ModelView::kQuality);
  const ModelSpace memory(space, ModelView::kMemory);
  EXPECT_EQ(quality.axes().size(), 3u);
  EXPECT_EQ(memory.axes().size(), 4u);
  const auto positions = [](const Point& point) {
    std::vector<double> result;
    for (const Coordinate& coordinate : point) result.push_back(coordinate.at);
    return result;
  };
  EXPECT_EQ(positions(quality.Encode(wide)), positions(quality.Encode(parts)));
  EXPECT_NE(positions(memory.Encode(wide)), positions(memory.Encode(parts)));
}

TEST(EffectiveBatch, ScaleGivesTheEndsTheirShare) {
  const SearchSpace space = BatchSpace();
  const NumericScale scale = EffectiveBatchScale(space, *FindEffectiveBatch(space));
  // Products begin 8, 12 and end 384, 512.
  EXPECT_NEAR(scale.ValueAt(0.0), 8.0 / std::sqrt(1.5), 1e-9);
  EXPECT_NEAR(scale.ValueAt(1.0), 512.0 * std::sqrt(512.0 / 384.0), 1e-9);
}

TEST(EffectiveBatch, TheNearestProductIsChosenAndTiesAreDrawn) {
  const SearchSpace space = BatchSpace();
  const EffectiveBatchPair pair = *FindEffectiveBatch(space);
  const ParamMap params = {{"model.name", std::string("base")}};
  Rng rng(2, 2);
  std::set<int64_t> firsts;
  for (int i = 0; i < 200; ++i) {
    const auto first = ChooseFirstOfPair(space, pair, params, space.parameters[1].domain, 48, rng);
    ASSERT_TRUE(first.has_value());
    firsts.insert(*first);
    EXPECT_EQ(*first * ChooseSecondOfPair(*first, space.parameters[3].domain, 48), 48);
  }
  EXPECT_EQ(firsts, (std::set<int64_t>{8, 12, 16, 24, 48}));
}

TEST(EffectiveBatch, TheProductIsChosenAmongWhatNarrowingsAllow) {
  const SearchSpace space = BatchSpace();
  const EffectiveBatchPair pair = *FindEffectiveBatch(space);
  const ParamMap params = {{"model.name", std::string("large")}};
  Rng rng(2, 3);
  const auto allowed = AllowedDomain(space, space.parameters[1], params);
  // At most 16 * 4.
  EXPECT_EQ(ChooseFirstOfPair(space, pair, params, *allowed, 512, rng), 16);
}

TEST(EffectiveBatch, DrawsStayNearTheProductsSeen) {
  const SearchSpace space = BatchSpace();
  const ModelSpace model(space, ModelView::kQuality);
  std::vector<Point> points;
  for (int i = 0; i < 60; ++i) {
    points.push_back(model.Encode({{"model.name", std::string("base")},
                                   {"train.lr", 1e-5},
                                   {kBatchSizeParameter, int64_t{16}},
                                   {kGradAccumParameter, int64_t{3}}}));
  }
  const ParzenEstimator density = ParzenOf(model.axes(), points);
  Rng rng(4, 4);
  int near = 0;
  for (int i = 0; i < 300; ++i) {
    const auto params = model.Draw(density, 0.5, rng);
    ASSERT_TRUE(params.has_value());
    EXPECT_TRUE(ValidateParams(space, *params).ok()) << FormatParams(*params);
    const int64_t product =
        *FindInt(*params, kBatchSizeParameter) * *FindInt(*params, kGradAccumParameter);
    near += product >= 32 && product <= 72;
  }
  EXPECT_GT(near, 240);
}

}  // namespace
}  // namespace hpo::sampler
