#include "memory/frontier/frontier_space.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/memory/simulated_law.h"

namespace hpo::memory {
namespace {

std::vector<ParamValue> ValuesOf(const Domain& domain) {
  SearchSpace space;
  space.parameters = {{.name = "x", .domain = domain, .when = {}, .default_value = {}}};
  const FrontierSpace found = *FrontierSpaceOf(space, {.relevant = {"x"}, .most_values = 4});
  return found.axes.empty() ? std::vector<ParamValue>{} : found.axes[0].values;
}

std::vector<ParamValue> Whole(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}

TEST(FrontierSpace, ThinsManyValuesByTheParametersScale) {
  EXPECT_EQ(ValuesOf(IntDomain{.low = 1, .high = 3}), Whole({1, 2, 3}));
  EXPECT_EQ(ValuesOf(IntDomain{.low = 1, .high = 100}), Whole({1, 34, 67, 100}));
  EXPECT_EQ(ValuesOf(IntDomain{.low = 64, .high = 512, .step = 64}), Whole({64, 192, 384, 512}));
  EXPECT_EQ(ValuesOf(IntDomain{.low = 1, .high = 1000, .log = true}), Whole({1, 10, 100, 1000}));
  EXPECT_EQ(ValuesOf(FloatDomain{.low = 0.0, .high = 3.0}),
            (std::vector<ParamValue>{0.0, 1.0, 2.0, 3.0}));
  EXPECT_EQ(ValuesOf(CategoricalDomain{Whole({8, 2, 4, 16, 1})}), Whole({1, 2, 4, 8, 16}))
      << "choices are all there, numbers in their order";
  EXPECT_TRUE(ValuesOf(IntDomain{.low = 7, .high = 7}).empty()) << "nothing is varied";
}

TEST(FrontierSpace, OtherParametersHaveTheirDefaultOrAValueFromTheMiddle) {
  SearchSpace space = SizesSpace();
  space.parameters[4].default_value = 3e-4;
  FrontierSpace found = *FrontierSpaceOf(space, {.relevant = {"batch"}});
  ASSERT_EQ(found.configurations.size(), 6u);
  EXPECT_EQ(found.axes.size(), 1u);
  EXPECT_EQ(found.configurations[0], (ParamMap{{"batch", int64_t{2}},
                                               {"hidden", int64_t{512}},
                                               {"layers", int64_t{7}},
                                               {"length", int64_t{320}},
                                               {"lr", 3e-4}}));
  EXPECT_FALSE(found.is_thinned);
  EXPECT_FALSE(found.is_sampled);
}

TEST(FrontierSpace, KeepsToConditionsAndConstraints) {
  SearchSpace space;
  space.parameters = {Choices("kind", {std::string("cnn"), std::string("rnn")}),
                      WholeNumber("width", 1, 3), WholeNumber("batch", 1, 4)};
  space.parameters[1].when = {{.name = "kind", .values = {std::string("cnn")}}};
  space.narrowings = {{.when = {{.name = "kind", .values = {std::string("rnn")}}},
                       .name = "batch",
                       .domain = IntDomain{.low = 1, .high = 2}}};
  // The kind decides whether there is a width, so it is varied too.
  const FrontierSpace found = *FrontierSpaceOf(space, {.relevant = {"width", "batch"}});
  EXPECT_EQ(found.configurations.size(), 3u * 4u + 2u);
  EXPECT_EQ(found.axes.size(), 3u);
  for (const ParamMap& params : found.configurations) {
    EXPECT_TRUE(ValidateParams(space, params).ok()) << FormatParams(params);
  }
}

TEST(FrontierSpace, DrawsFromALargeSpace) {
  const SearchSpace space = SizesSpace();
  const FrontierSpaceOptions options{.relevant = UsualRelevant(space), .most_configurations = 50};
  const FrontierSpace found = *FrontierSpaceOf(space, options);
  EXPECT_TRUE(found.is_sampled);
  EXPECT_GE(found.configurations.size(), 45u);
  EXPECT_EQ(found.configurations, FrontierSpaceOf(space, options)->configurations);
  for (const ParamMap& params : found.configurations) {
    EXPECT_TRUE(ValidateParams(space, params).ok()) << FormatParams(params);
  }
}

TEST(FrontierSpace, NamesWhatIsWrong) {
  const absl::StatusOr<FrontierSpace> found = FrontierSpaceOf(SizesSpace(), {.relevant = {"bach"}});
  EXPECT_EQ(
      found.status().message(),
      "expected a parameter of the study (batch, length, hidden, layers, lr), got 'bach'; did "
      "you mean 'batch'?");
}

}  // namespace
}  // namespace hpo::memory
