#include "sampler/tpe/model_space.h"

#include <cmath>

#include "gtest/gtest.h"
#include "sampler/space/model_view.h"
#include "tests/sampler/parzen_of.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

SearchSpace Square() {
  SearchSpace space;
  space.parameters = {MakeParameter("x", FloatDomain{0.0, 1.0}),
                      MakeParameter("y", FloatDomain{0.0, 1.0})};
  return space;
}

SearchSpace WithChoice(bool conditional) {
  SearchSpace space = Square();
  space.parameters.insert(
      space.parameters.begin(),
      MakeParameter("kind", CategoricalDomain{{std::string("a"), std::string("b")}}));
  if (conditional) space.parameters[2].when = {{"kind", {std::string("b")}}};
  return space;
}

ParzenEstimator DensityOf(const ModelSpace& model, const std::vector<ParamMap>& trials) {
  std::vector<Point> points;
  for (const ParamMap& params : trials) points.push_back(model.Encode(params));
  return ParzenOf(model.axes(), points);
}

// Trials on both ends of the diagonal: pairs from one trial lie on it, pairs from two trials on
// either diagonal.
TEST(ModelSpace, AShareOfTheParametersOfADrawComesFromOneTrial) {
  const SearchSpace space = Square();
  const ModelSpace model(space, ModelView::kQuality);
  std::vector<ParamMap> trials;
  for (int i = 0; i < 150; ++i) {
    trials.push_back({{"x", 0.1}, {"y", 0.1}});
    trials.push_back({{"x", 0.9}, {"y", 0.9}});
  }
  const ParzenEstimator density = DensityOf(model, trials);
  Rng rng(1, 4);
  constexpr int kDraws = 4'000;
  for (const double together : {0.0, 0.5, 1.0}) {
    int on_diagonal = 0;
    for (int i = 0; i < kDraws; ++i) {
      const ParamMap drawn = *model.Draw(density, together, rng);
      on_diagonal += (*FindDouble(drawn, "x") < 0.5) == (*FindDouble(drawn, "y") < 0.5);
    }
    const double both_from_one = together * together;
    EXPECT_NEAR(static_cast<double>(on_diagonal) / kDraws,
                both_from_one + (1.0 - both_from_one) * 0.5, 0.04)
        << together;
  }
}

// A trial without the parameter cannot give it: it comes from those that have it.
TEST(ModelSpace, AParameterWithAConditionComesFromTrialsThatHaveIt) {
  const SearchSpace space = WithChoice(/*conditional=*/true);
  const ModelSpace model(space, ModelView::kQuality);
  std::vector<ParamMap> trials;
  for (int i = 0; i < 150; ++i) {
    trials.push_back({{"kind", std::string("a")}, {"x", 0.5}});
    trials.push_back({{"kind", std::string("b")}, {"x", 0.5}, {"y", 0.9}});
  }
  const ParzenEstimator density = DensityOf(model, trials);
  Rng rng(1, 5);
  int with_y = 0;
  int near = 0;
  for (int i = 0; i < 2'000; ++i) {
    const ParamMap drawn = *model.Draw(density, 0.5, rng);
    const auto y = FindDouble(drawn, "y");
    EXPECT_EQ(y.has_value(), drawn.at("kind") == ParamValue(std::string("b")));
    if (!y.has_value()) continue;
    ++with_y;
    near += std::abs(*y - 0.9) < 0.1;
  }
  EXPECT_GT(with_y, 500);
  EXPECT_GT(near, with_y * 9 / 10);
}

TEST(ModelSpace, MarginalsOfNumbersCountLessWhereNothingHasConditions) {
  const SearchSpace plain = WithChoice(/*conditional=*/false);
  const SearchSpace conditional = WithChoice(/*conditional=*/true);
  const ModelSpace without(plain, ModelView::kQuality);
  const ModelSpace with(conditional, ModelView::kQuality);
  EXPECT_EQ(without.axes()[0].marginal_share, 1.0);
  EXPECT_LT(without.axes()[1].marginal_share, 1.0);
  EXPECT_EQ(without.axes()[1].marginal_share, without.axes()[2].marginal_share);
  for (const ParzenAxis& axis : with.axes()) EXPECT_EQ(axis.marginal_share, 1.0);
}

}  // namespace
}  // namespace hpo::sampler
