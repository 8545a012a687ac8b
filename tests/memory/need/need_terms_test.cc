#include "memory/need/need_terms.h"

#include "gtest/gtest.h"
#include "tests/memory/simulated_law.h"

namespace hpo::memory {
namespace {

SearchSpace SpaceOf(std::vector<Parameter> parameters) {
  SearchSpace space;
  space.parameters = std::move(parameters);
  return space;
}

Parameter Real(const std::string& name, double low, double high) {
  return {.name = name,
          .domain = FloatDomain{.low = low, .high = high},
          .when = {},
          .default_value = {}};
}

TEST(NeedTerms, WholeNumbersAndChoicesCountUnlessOthersAreNamed) {
  Parameter seed = WholeNumber("seed", 1, 1000);
  seed.modelled = false;
  const SearchSpace space =
      SpaceOf({Choices("batch", {int64_t{8}, int64_t{16}}), WholeNumber("length", 64, 512, 64),
               Choices("model", {std::string("a"), std::string("b")}),
               Choices("flag", {true, false}), Choices("one", {std::string("only")}),
               WholeNumber("fixed", 3, 3), Real("lr", 1e-5, 1e-3), seed});
  struct Case {
    std::vector<std::string> relevant;
    size_t numbers;
    size_t choices;
  };
  const Case cases[] = {{{}, 2, 2}, {{"lr"}, 1, 0}, {{"length", "model", "seed"}, 1, 1}};
  for (const Case& c : cases) {
    const NeedTerms terms(space, c.relevant);
    EXPECT_EQ(terms.num_numbers(), c.numbers);
    EXPECT_EQ(terms.PointOf({}).choices.size(), c.choices);
  }
}

// The products of two numbers of degree 4 at most, counted by hand: each is absent, inverse, linear
// or square (16), without the two inverses at once.
TEST(NeedTerms, AreAllProductsOfTheDegree) {
  const SearchSpace space =
      SpaceOf({WholeNumber("batch", 8, 64), WholeNumber("length", 64, 512, 64)});
  EXPECT_EQ(NeedTerms(space, {}).size(), 15u);
  // Two values: common terms and each value's.
  SearchSpace grouped = space;
  grouped.parameters.push_back(Choices("model", {std::string("a"), std::string("b")}));
  EXPECT_EQ(NeedTerms(grouped, {}).size(), 3 * 15u);
}

TEST(NeedTerms, NeverMoreThanTheLimit) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 30; ++i) {
    parameters.push_back(WholeNumber("size" + std::to_string(i), 1, 100));
    const size_t size = NeedTerms(SpaceOf(parameters), {}).size();
    EXPECT_LE(size, NeedTerms::kMaxTerms);
    EXPECT_GE(size, parameters.size() + 1) << "each at least by itself";
  }
}

// Which values some terms have at a point.
std::vector<double> ValuesAt(const NeedTerms& terms, const ParamMap& params) {
  std::vector<double> values;
  for (size_t term = 0; term < terms.size(); ++term) {
    values.push_back(terms.Value(term, terms.PointOf(params)));
  }
  std::sort(values.begin(), values.end());
  return values;
}

TEST(NeedTerms, FactorsAreScaledByTheRange) {
  const NeedTerms terms(SpaceOf({WholeNumber("size", 100, 400)}), {});
  // 1, x / 400, (x / 400)^2, 100 / x
  EXPECT_EQ(ValuesAt(terms, {{"size", int64_t{200}}}), (std::vector<double>{0.25, 0.5, 0.5, 1.0}));
  const NeedTerms small(SpaceOf({WholeNumber("log2", 0, 8)}), {});
  // 1, x / 8, (x / 8)^2, 2^(x - 8); nothing is divided by what may be 0.
  EXPECT_EQ(ValuesAt(small, {{"log2", int64_t{6}}}),
            (std::vector<double>{0.25, 0.5625, 0.75, 1.0}));
  const NeedTerms below_zero(SpaceOf({Real("shift", -2.0, 2.0)}), {"shift"});
  EXPECT_EQ(ValuesAt(below_zero, {{"shift", 0.0}}), (std::vector<double>{0.25, 0.5, 1.0}));
}

TEST(NeedTerms, WhatIsAbsentTakesItsProductsAlong) {
  const NeedTerms terms(SpaceOf({WholeNumber("size", 100, 400)}), {});
  EXPECT_EQ(ValuesAt(terms, {}), (std::vector<double>{0.0, 0.0, 0.0, 1.0}));
  EXPECT_EQ(ValuesAt(terms, {{"size", std::string("large")}}), ValuesAt(terms, {}));
}

TEST(NeedTerms, AChoicesTermsAreItsOwn) {
  const NeedTerms terms(SpaceOf({Choices("model", {std::string("a"), std::string("b")})}), {});
  ASSERT_EQ(terms.size(), 3u);
  EXPECT_EQ(ValuesAt(terms, {{"model", std::string("a")}}), (std::vector<double>{0.0, 1.0, 1.0}));
  EXPECT_EQ(ValuesAt(terms, {{"model", std::string("c")}}), (std::vector<double>{0.0, 0.0, 1.0}));
}

TEST(NeedTerms, SelectedTermsKeepTheirValueAndDirection) {
  const NeedTerms all(SpaceOf({WholeNumber("size", 100, 400)}), {});
  const NeedPoint point = all.PointOf({{"size", int64_t{200}}});
  for (size_t term = 0; term < all.size(); ++term) {
    const NeedTerms one = all.Select({term});
    ASSERT_EQ(one.size(), 1u);
    EXPECT_EQ(one.Value(0, point), all.Value(term, point));
    EXPECT_EQ(one.GrowsWith(0, 0), all.GrowsWith(term, 0));
    EXPECT_EQ(one.ShrinksWith(0, 0), all.ShrinksWith(term, 0));
    EXPECT_FALSE(one.GrowsWith(0, 0) && one.ShrinksWith(0, 0));
    const NeedPoint larger = all.PointOf({{"size", int64_t{300}}});
    EXPECT_EQ(one.GrowsWith(0, 0), one.Value(0, larger) > one.Value(0, point));
    EXPECT_EQ(one.ShrinksWith(0, 0), one.Value(0, larger) < one.Value(0, point));
  }
}

}  // namespace
}  // namespace hpo::memory
