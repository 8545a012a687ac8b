#include "sampler/space/coded_space.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/space/search_space_validation.h"
#include "gtest/gtest.h"
#include "sampler/space/random_configuration.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

ParamValue Text(const char* text) { return std::string(text); }

// A model, what depends on it, numbers of every kind.
SearchSpace EveryKind() {
  SearchSpace space;
  space.parameters = {
      MakeParameter("model.name", CategoricalDomain{{Text("small"), Text("large"), Text("huge")}}),
      MakeParameter("length", IntDomain{.low = 128, .high = 512, .step = 32}),
      MakeParameter("width", IntDomain{.low = 1, .high = 100000, .log = true}),
      MakeParameter("rate", FloatDomain{.low = 1e-6, .high = 1e-2, .log = true}),
      MakeParameter("drop", FloatDomain{.low = 0.0, .high = 0.6, .step = 0.05}),
      MakeParameter("decay", FloatDomain{.low = -1.0, .high = 3.0}),
      MakeParameter("only", CategoricalDomain{{true}}),
  };
  space.parameters[4].when = {{kModelClassFact, {Text("heavy")}}};
  space.parameters[5].when = {{"model.name", {Text("small"), Text("huge")}}};
  space.model_facts = {{"large", {{kModelClassFact, Text("heavy")}}},
                       {"huge", {{kModelClassFact, Text("heavy")}}}};
  space.narrowings = {
      {{{kModelClassFact, {Text("heavy")}}},
       "length",
       IntDomain{.low = 128, .high = 256, .step = 32}},
      {{{"model.name", {Text("huge")}}},
       "rate",
       FloatDomain{.low = 1e-5, .high = 1e-3, .log = true}},
      {{{"model.name", {Text("huge")}}}, "width", IntDomain{.low = 10, .high = 1000, .log = true}}};
  return space;
}

TEST(CodedSpace, CompletedCodesAreValidConfigurations) {
  const SearchSpace space = EveryKind();
  ASSERT_TRUE(ValidateSpace(space).ok());
  const CodedSpace coded(space);
  Rng rng(3, 3);
  for (int i = 0; i < 500; ++i) {
    Codes codes(coded.size(), std::nan(""));
    ASSERT_TRUE(coded.Complete(codes, rng));
    const auto params = coded.Decode(codes);
    ASSERT_TRUE(params.has_value());
    const absl::Status valid = ValidateParams(space, *params);
    ASSERT_TRUE(valid.ok()) << valid;
  }
}

TEST(CodedSpace, EncodeAndDecodeAreInverse) {
  const SearchSpace space = EveryKind();
  const CodedSpace coded(space);
  Rng rng(5, 5);
  for (int i = 0; i < 200; ++i) {
    const ParamMap params = *DrawConfiguration(space, {}, rng);
    const auto codes = coded.Encode(params);
    ASSERT_TRUE(codes.has_value());
    Codes kept = *codes;
    ASSERT_TRUE(coded.Complete(kept, rng));
    const auto decoded = coded.Decode(kept);
    ASSERT_TRUE(decoded.has_value());
    ASSERT_EQ(decoded->size(), params.size());
    for (const auto& [name, value] : params) {
      if (const double* real = std::get_if<double>(&value)) {
        EXPECT_NEAR(std::get<double>(decoded->at(name)), *real, 1e-12 * std::abs(*real) + 1e-12);
      } else {
        EXPECT_EQ(decoded->at(name), value) << name;
      }
    }
  }
}

TEST(CodedSpace, ConditionsOnValuesAndOnFactsOfModels) {
  const SearchSpace space = EveryKind();
  const CodedSpace coded(space);
  const std::pair<double, std::pair<bool, bool>> cases[] = {
      {0.0, {false, true}}, {1.0, {true, false}}, {2.0, {true, true}}};
  for (const auto& [model, active] : cases) {
    Codes codes(coded.size(), 0.0);
    codes[0] = model;
    EXPECT_EQ(coded.Active(4, codes), active.first) << model;
    EXPECT_EQ(coded.Active(5, codes), active.second) << model;
  }
}

TEST(CodedSpace, NarrowingsCutTheCodes) {
  const SearchSpace space = EveryKind();
  const CodedSpace coded(space);
  Codes codes(coded.size(), 0.0);
  EXPECT_EQ(coded.Allowed(1, codes)->high, 12.0);
  codes[0] = 1.0;
  EXPECT_EQ(coded.Allowed(1, codes)->high, 4.0);
  EXPECT_EQ(coded.Allowed(3, codes)->low, 0.0);
  codes[0] = 2.0;
  EXPECT_NEAR(coded.Allowed(3, codes)->low, 0.25, 1e-12);
  EXPECT_NEAR(coded.Allowed(3, codes)->high, 0.75, 1e-12);
  EXPECT_EQ(coded.Allowed(2, codes)->low, 9.0);
  EXPECT_EQ(coded.Allowed(2, codes)->high, 999.0);
}

TEST(CodedSpace, NarrowedChoicesAndNothingLeft) {
  SearchSpace space;
  space.parameters = {MakeParameter("a", CategoricalDomain{{Text("x"), Text("y"), Text("z")}}),
                      MakeParameter("b", CategoricalDomain{{Text("p"), Text("q"), Text("r")}})};
  space.narrowings = {
      {{{"a", {Text("y"), Text("z")}}}, "b", CategoricalDomain{{Text("q"), Text("r")}}},
      {{{"a", {Text("z")}}}, "b", CategoricalDomain{{Text("p")}}}};
  const CodedSpace coded(space);
  EXPECT_TRUE(coded.Allowed(1, {0.0, 0.0})->Contains(0.0));
  EXPECT_EQ(coded.Allowed(1, {1.0, 0.0})->choices, (std::vector<double>{1.0, 2.0}));
  EXPECT_FALSE(coded.Allowed(1, {2.0, 0.0}).has_value());
  Rng rng(1, 1);
  Codes kept = {1.0, 2.0};
  EXPECT_TRUE(coded.Complete(kept, rng));
  EXPECT_EQ(kept, (Codes{1.0, 2.0}));
  Codes moved = {1.0, 0.0};
  EXPECT_TRUE(coded.Complete(moved, rng));
  EXPECT_NE(moved[1], 0.0);
  Codes contradiction = {2.0, 0.0};
  EXPECT_FALSE(coded.Complete(contradiction, rng));
  EXPECT_FALSE(coded.Decode({2.0, 0.0}).has_value());
}

TEST(CodedSpace, WhatTheSpaceDoesNotHold) {
  const SearchSpace space = EveryKind();
  const CodedSpace coded(space);
  Rng rng(9, 9);
  const ParamMap params = *DrawConfiguration(space, {{"model.name", Text("large")}}, rng);
  ParamMap missing = params;
  missing.erase("rate");
  EXPECT_FALSE(coded.Encode(missing).has_value());
  ParamMap outside = params;
  outside["length"] = int64_t{1024};
  EXPECT_FALSE(coded.Encode(outside).has_value());
  ParamMap other_type = params;
  other_type["rate"] = Text("fast");
  EXPECT_FALSE(coded.Encode(other_type).has_value());
  ParamMap unknown_choice = params;
  unknown_choice["model.name"] = Text("gone");
  ASSERT_TRUE(coded.Encode(unknown_choice).has_value());
  EXPECT_EQ((*coded.Encode(unknown_choice))[0], kUnknownChoice);
}

// Few values, more values than positions are kept for, and values by logarithm.
TEST(CodedSpace, PositionsRiseThroughTheUnitInterval) {
  SearchSpace space;
  space.parameters = {MakeParameter("few", IntDomain{.low = 3, .high = 7, .step = 2}),
                      MakeParameter("many", IntDomain{.low = 0, .high = 1'000'000}),
                      MakeParameter("log", IntDomain{.low = 1, .high = 1024, .log = true})};
  const CodedSpace coded(space);
  EXPECT_NEAR(coded.Position(0, 0.0), 1.0 / 6.0, 1e-12);
  EXPECT_NEAR(coded.Position(0, 1.0), 0.5, 1e-12);
  EXPECT_NEAR(coded.Position(1, 500'000.0), 0.5, 1e-12);
  EXPECT_LT(coded.Position(2, 0.0), coded.Position(2, 1.0));
  EXPECT_GT(coded.Position(2, 31.0), 0.5);
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(coded.constant(i));
}

// Draws by logarithm spread over the orders of magnitude; those of a grid over its values.
TEST(CodedSpace, DrawsAreUniformOnTheirScale) {
  SearchSpace space;
  space.parameters = {MakeParameter("log", IntDomain{.low = 1, .high = 9999, .log = true}),
                      MakeParameter("grid", IntDomain{.low = 0, .high = 9})};
  const CodedSpace coded(space);
  Rng rng(2, 2);
  int below_hundred = 0;
  std::vector<int> counts(10, 0);
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    Codes codes(2, std::nan(""));
    ASSERT_TRUE(coded.Complete(codes, rng));
    below_hundred += codes[0] < 99.0;
    ++counts[static_cast<size_t>(codes[1])];
  }
  EXPECT_NEAR(below_hundred, kDraws * 0.535, 150);  // ln(99.5 / 0.5) / ln(9999.5 / 0.5)
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 10, 90);
}

}  // namespace
}  // namespace hpo::sampler
