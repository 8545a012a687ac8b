#include "sampler/space/tried_cells.h"

#include <cmath>
#include <map>
#include <set>

#include "gtest/gtest.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

constexpr size_t kMany = 100'000;

SearchSpace SpaceOf(std::vector<Parameter> parameters) {
  SearchSpace space;
  space.parameters = std::move(parameters);
  return space;
}

Parameter Seed() {
  Parameter seed = MakeParameter("seed", FloatDomain{});
  seed.modelled = false;
  return seed;
}

size_t NumUntried(const SearchSpace& space, const std::vector<Codes>& tried, size_t most) {
  const CodedSpace coded(space);
  Rng rng(1, 1);
  const auto left = UntriedOf(coded, TriedCells(coded, tried), most, rng);
  EXPECT_TRUE(left.has_value());
  std::set<ParamMap> distinct;
  for (const Codes& codes : *left) {
    ParamMap params = *coded.Decode(codes);
    EXPECT_TRUE(ValidateParams(space, params).ok()) << FormatParams(params);
    params.erase("seed");
    distinct.insert(params);
  }
  EXPECT_EQ(distinct.size(), left->size());
  return distinct.size();
}

TEST(UntriedOf, IsWhatIsLeft) {
  Parameter child = MakeParameter("child", IntDomain{.low = 1, .high = 3});
  child.when = {{"n", {int64_t{0}}}};
  const SearchSpace space =
      SpaceOf({Seed(), MakeParameter("n", IntDomain{.low = 0, .high = 3}), child});
  const double none = std::nan("");
  EXPECT_EQ(NumUntried(space, {}, kMany), 6u);
  EXPECT_EQ(NumUntried(space, {{0.5, 0.0, 0.0}, {0.7, 0.0, 0.0}, {0.1, 2.0, none}}, kMany), 4u);
  EXPECT_EQ(NumUntried(space, {}, 2), 2u);
}

// Each is as likely as the others.
TEST(UntriedOf, OfManySomeAreDrawn) {
  const SearchSpace space = SpaceOf({MakeParameter("n", IntDomain{.low = 0, .high = 9})});
  const CodedSpace coded(space);
  const TriedCells none(coded, std::vector<Codes>());
  Rng rng(2, 1);
  std::map<double, int> counts;
  for (int i = 0; i < 1000; ++i) {
    const auto two = UntriedOf(coded, none, 2, rng);
    for (const Codes& codes : *two) ++counts[codes[0]];
  }
  EXPECT_EQ(counts.size(), 10u);
  for (const auto& [code, count] : counts) EXPECT_NEAR(count, 200, 60) << code;
}

TEST(UntriedOf, OnlySmallSpacesThatCanBeCounted) {
  const std::pair<SearchSpace, bool> cases[] = {
      {SpaceOf({MakeParameter("x", FloatDomain{})}), false},
      {SpaceOf({MakeParameter("x", FloatDomain{.low = 0.0, .high = 1.0, .step = 0.25})}), true},
      {SpaceOf({MakeParameter("n", IntDomain{.low = 1, .high = 4096}), Seed()}), true},
      {SpaceOf({MakeParameter("n", IntDomain{.low = 1, .high = 4097})}), false},
      {SpaceOf({}), true},
  };
  for (const auto& [space, small] : cases) {
    const CodedSpace coded(space);
    Rng rng(1, 1);
    const TriedCells none(coded, std::vector<Codes>());
    EXPECT_EQ(UntriedOf(coded, none, kMany, rng).has_value(), small);
  }
}

}  // namespace
}  // namespace hpo::sampler
