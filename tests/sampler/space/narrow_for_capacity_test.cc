#include "sampler/space/narrow_for_capacity.h"

#include <algorithm>

#include "common/space/search_space_validation.h"
#include "gtest/gtest.h"
#include "sampler/sampler.h"
#include "tests/sampler/simulated_study.h"

namespace hpo {
namespace {

SearchSpace TextSpace() {
  SearchSpace space;
  space.parameters = {
      MakeParameter("model.name", CategoricalDomain{{std::string("base"), std::string("large")}}),
      MakeParameter("tok.max_length", IntDomain{.low = 128, .high = 512, .step = 32}),
      MakeParameter("train.batch_size",
                    CategoricalDomain{{int64_t{8}, int64_t{16}, int64_t{32}, int64_t{64}}}),
      MakeParameter("train.lr", FloatDomain{.low = 1e-6, .high = 1e-4, .log = true})};
  space.model_facts["large"] = {{kModelClassFact, std::string("heavy")}};
  return space;
}

// Needs length * batch, three times as much for the large model, in MiB.
BatchFeasibility TokensFit(int64_t limit_mib) {
  return [limit_mib](std::span<const ParamMap> candidates) {
    std::vector<Fit> fits;
    for (const ParamMap& params : candidates) {
      const int64_t factor = *FindString(params, "model.name") == "large" ? 3 : 1;
      const int64_t need =
          factor * *FindInt(params, "tok.max_length") * *FindInt(params, "train.batch_size");
      fits.push_back({.fits = need <= limit_mib, .needed = MiB(need)});
    }
    return fits;
  };
}

AskContext Asking(SearchSpace space, BatchFeasibility feasibility) {
  return {TrialNumber{0}, std::move(space), GiB(1), std::move(feasibility)};
}

TEST(NarrowForCapacity, WithoutAnEstimateNothingIsNarrowed) {
  EXPECT_EQ(NarrowForCapacity(Asking(TextSpace(), nullptr)), TextSpace());
}

TEST(NarrowForCapacity, WhereEverythingFitsNothingIsNarrowed) {
  EXPECT_EQ(NarrowForCapacity(Asking(TextSpace(), TokensFit(1 << 30))), TextSpace());
}

TEST(NarrowForCapacity, WhereNothingFitsTheSpaceIsReturnedWhole) {
  EXPECT_EQ(NarrowForCapacity(Asking(TextSpace(), TokensFit(0))), TextSpace());
}

TEST(NarrowForCapacity, KeepsTheValuesThatFitWithTheCheapestElsewhere) {
  const SearchSpace narrowed = NarrowForCapacity(Asking(TextSpace(), TokensFit(2500)));
  // large needs at least 3 * 128 * 8 = 3072; at base, 8 * 288 fits and 8 * 320 does not.
  EXPECT_EQ(narrowed.Find("model.name")->domain, Domain(CategoricalDomain{{std::string("base")}}));
  EXPECT_EQ(narrowed.Find("tok.max_length")->domain,
            Domain(IntDomain{.low = 128, .high = 288, .step = 32}));
  EXPECT_EQ(narrowed.Find("train.batch_size")->domain,
            Domain(CategoricalDomain{{int64_t{8}, int64_t{16}}}));
  EXPECT_EQ(narrowed.Find("train.lr")->domain, TextSpace().Find("train.lr")->domain);
}

TEST(NarrowForCapacity, FindsTheBoundaryOfAWideRange) {
  SearchSpace space;
  space.parameters = {MakeParameter("n", IntDomain{.low = 1, .high = 1'000'000}),
                      MakeParameter("x", FloatDomain{.low = 0.0, .high = 1.0})};
  const auto narrowed = NarrowForCapacity(Asking(space, [](std::span<const ParamMap> candidates) {
    std::vector<Fit> fits;
    for (const ParamMap& params : candidates) {
      const bool fit = *FindInt(params, "n") <= 777'777 && *FindDouble(params, "x") >= 0.3;
      fits.push_back(
          {.fits = fit,
           .needed = Bytes{*FindInt(params, "n")} +
                     Bytes{static_cast<int64_t>(1e6 * (1.0 - *FindDouble(params, "x")))}});
    }
    return fits;
  }));
  EXPECT_EQ(narrowed.Find("n")->domain, Domain(IntDomain{.low = 1, .high = 777'777}));
  const auto& x = std::get<FloatDomain>(narrowed.Find("x")->domain);
  EXPECT_NEAR(x.low, 0.3, 1e-9);
  EXPECT_EQ(x.high, 1.0);
}

TEST(NarrowForCapacity, DefaultsAndNarrowingsStayInside) {
  SearchSpace space = TextSpace();
  space.parameters[1].default_value = int64_t{512};
  space.parameters[2].default_value = int64_t{8};
  space.narrowings = {{{{kModelClassFact, {std::string("heavy")}}},
                       "train.batch_size",
                       CategoricalDomain{{int64_t{8}, int64_t{32}}}},
                      {{{"model.name", {std::string("base")}}},
                       "tok.max_length",
                       IntDomain{.low = 128, .high = 512, .step = 32}}};
  const SearchSpace narrowed = NarrowForCapacity(Asking(space, TokensFit(2500)));
  EXPECT_FALSE(narrowed.Find("tok.max_length")->default_value.has_value());
  EXPECT_EQ(narrowed.Find("train.batch_size")->default_value, ParamValue(int64_t{8}));
  ASSERT_TRUE(ValidateSpace(narrowed).ok()) << ValidateSpace(narrowed);
  EXPECT_EQ(narrowed.narrowings[0].domain, Domain(CategoricalDomain{{int64_t{8}}}));
  EXPECT_EQ(narrowed.narrowings[1].domain, Domain(IntDomain{.low = 128, .high = 288, .step = 32}));
}

// A parameter that only the large model has is judged with the large model.
TEST(NarrowForCapacity, ConditionalParametersAreJudgedWhereTheyExist) {
  SearchSpace space = TextSpace();
  Parameter chunks = MakeParameter("chunks", IntDomain{.low = 1, .high = 8});
  chunks.when = {{kModelClassFact, {std::string("heavy")}}};
  space.parameters.push_back(chunks);
  // The large model needs at least 3072 of 4000 MiB.
  const std::pair<int64_t, int64_t> cases[] = {{100, 8}, {200, 4}};
  for (const auto& [mib_per_chunk, most] : cases) {
    SCOPED_TRACE(mib_per_chunk);
    const auto narrowed = NarrowForCapacity(
        Asking(space, [mib = mib_per_chunk](std::span<const ParamMap> candidates) {
          std::vector<Fit> fits = TokensFit(4000)(candidates);
          for (size_t i = 0; i < fits.size(); ++i) {
            fits[i].needed += MiB(mib * FindInt(candidates[i], "chunks").value_or(0));
            fits[i].fits = fits[i].needed <= MiB(4000);
          }
          return fits;
        }));
    EXPECT_EQ(narrowed.Find("chunks")->domain, Domain(IntDomain{.low = 1, .high = most}));
  }
}

TEST(NarrowForCapacity, EvaluationsAreBounded) {
  int64_t num_evaluations = 0;
  const BatchFeasibility tokens = TokensFit(2500);
  NarrowForCapacity(Asking(TextSpace(), [&](std::span<const ParamMap> candidates) {
    num_evaluations += static_cast<int64_t>(candidates.size());
    return tokens(candidates);
  }));
  EXPECT_LT(num_evaluations, 500);
}

}  // namespace
}  // namespace hpo
