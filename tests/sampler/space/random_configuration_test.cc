#include "sampler/space/random_configuration.h"

#include <set>

#include "gtest/gtest.h"
#include "sampler/numeric/portable_math.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

SearchSpace Space() {
  SearchSpace space;
  space.parameters = {
      MakeParameter("optimizer", CategoricalDomain{{std::string("sgd"), std::string("adam")}}),
      MakeParameter("momentum", FloatDomain{}),
      MakeParameter("size", IntDomain{.low = 1, .high = 4})};
  space.parameters[1].when = {{"optimizer", {std::string("sgd")}}};
  space.narrowings = {
      {{{"optimizer", {std::string("adam")}}}, "size", IntDomain{.low = 3, .high = 4}}};
  return space;
}

TEST(ConfigurationAt, TakesThePartOfWhatIsAllowed) {
  Rng rng(1, 1);
  const auto sgd = ConfigurationAt(Space(), {}, std::vector<double>{0.1, 0.25, 0.6}, rng);
  ASSERT_TRUE(sgd.ok());
  EXPECT_EQ(
      *sgd,
      (ParamMap{{"optimizer", std::string("sgd")}, {"momentum", 0.25}, {"size", int64_t{3}}}));
  const auto adam = ConfigurationAt(Space(), {}, std::vector<double>{0.9, 0.25, 0.4}, rng);
  ASSERT_TRUE(adam.ok());
  EXPECT_EQ(*adam, (ParamMap{{"optimizer", std::string("adam")}, {"size", int64_t{3}}}));
}

TEST(ConfigurationAt, AllowedPresetsComeFirst) {
  Rng rng(1, 1);
  const std::vector<double> point = {0.9, 0.5, 0.9};
  EXPECT_EQ(*ConfigurationAt(Space(), {{"size", int64_t{3}}, {"momentum", 0.1}}, point, rng),
            (ParamMap{{"optimizer", std::string("adam")}, {"size", int64_t{3}}}));
  EXPECT_EQ(ConfigurationAt(Space(), {{"size", int64_t{1}}}, point, rng)->at("size"),
            ParamValue(int64_t{4}))
      << "not allowed together with adam";
}

TEST(ConfigurationAt, WhatHasNoCoordinateIsDrawn) {
  Rng rng(5, 1);
  for (const std::vector<double>& point : {std::vector<double>{0.1, kNoNumber}, {0.1}}) {
    std::set<double> momenta;
    for (int i = 0; i < 20; ++i) {
      const auto params = ConfigurationAt(Space(), {}, point, rng);
      ASSERT_TRUE(ValidateParams(Space(), *params).ok());
      momenta.insert(*FindDouble(*params, "momentum"));
    }
    EXPECT_EQ(momenta.size(), 20u);
  }
}

TEST(ConfigurationAt, NamesTheParameterThatIsLeftNoValue) {
  SearchSpace space = Space();
  space.narrowings.push_back(
      {{{"optimizer", {std::string("adam")}}}, "size", IntDomain{.low = 1, .high = 2}});
  Rng rng(1, 1);
  const auto none = ConfigurationAt(space, {}, std::vector<double>{0.9}, rng);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(none.status().message().find("size no value"), absl::string_view::npos);
  // A draw begins again until it comes to the other optimizer.
  EXPECT_TRUE(DrawConfiguration(space, {}, rng).ok());
}

}  // namespace
}  // namespace hpo::sampler
