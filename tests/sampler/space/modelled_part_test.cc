#include "sampler/space/modelled_part.h"

#include "gtest/gtest.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

// `seeds` of them, which are not modelled, before and after what is.
SearchSpace SpaceWith(bool seeds) {
  SearchSpace space;
  for (const char* name : {"a_seed", "n", "z_seed"}) {
    space.parameters.push_back(MakeParameter(name, IntDomain{.low = 0, .high = 9}));
    space.parameters.back().modelled = !seeds || space.parameters.back().name == "n";
  }
  return space;
}

TEST(ModelledPart, LeavesOutWhatIsNotModelled) {
  const ParamMap two = {{"a_seed", int64_t{1}}, {"n", int64_t{2}}, {"z_seed", int64_t{3}}};
  const struct {
    ParamMap other;
    bool same_part;
  } cases[] = {
      {two, true},
      {{{"a_seed", int64_t{7}}, {"n", int64_t{2}}, {"z_seed", int64_t{8}}}, true},
      {{{"n", int64_t{2}}}, true},
      {{{"a_seed", int64_t{1}}, {"n", int64_t{3}}, {"z_seed", int64_t{3}}}, false},
      {{{"a_seed", int64_t{1}}, {"n", 2.0}, {"z_seed", int64_t{3}}}, false},
      {{{"n", int64_t{2}}, {"unknown", true}}, false},
      {{{"a_seed", int64_t{1}}}, false},
  };
  const ModelledPart part(SpaceWith(true));
  const ModelledPart whole(SpaceWith(false));
  EXPECT_TRUE(part.leaves_out());
  EXPECT_FALSE(whole.leaves_out());
  for (const auto& [other, same_part] : cases) {
    SCOPED_TRACE(FormatParams(other));
    EXPECT_EQ(part.Same(two, other), same_part);
    EXPECT_EQ(part.Same(other, two), same_part);
    EXPECT_EQ(whole.Same(two, other), two == other);
    EXPECT_EQ(part.Hash(two) == part.Hash(other), same_part);
    EXPECT_EQ(whole.Hash(two) == whole.Hash(other), two == other);
  }
}

TEST(ModelledPart, TriedInWhateverState) {
  const ModelledPart part(SpaceWith(true));
  History history;
  EXPECT_FALSE(Tried(history, part, {}));
  history.Apply({1, {.number = TrialNumber{0}, .params = {{"n", int64_t{1}}}}});
  history.Apply({2,
                 {.number = TrialNumber{1},
                  .params = {{"n", int64_t{2}}, {"z_seed", int64_t{5}}},
                  .state = TrialState::kFailed}});
  EXPECT_TRUE(Tried(history, part, {{"n", int64_t{1}}}));
  EXPECT_TRUE(Tried(history, part, {{"n", int64_t{2}}, {"z_seed", int64_t{6}}}));
  EXPECT_FALSE(Tried(history, part, {{"n", int64_t{3}}, {"z_seed", int64_t{5}}}));
}

}  // namespace
}  // namespace hpo::sampler
