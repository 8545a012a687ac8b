// What every sampler must do, whatever its method. Run for each type that a study may name.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/space/search_space_validation.h"
#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "sampler/numeric/portable_math.h"
#include "sampler/simple/grid_sampler.h"
#include "sampler/space/numeric_scale.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

// With steps where values could not be counted.
void MakeCountable(Domain& domain) {
  auto* real = std::get_if<FloatDomain>(&domain);
  if (real == nullptr || real->step.has_value()) return;
  if (!std::isfinite(real->high - real->low))
    *real = {.low = real->low / 2, .high = real->high / 2};
  real->step = (real->high - real->low) / 8.0;
  if (real->low + *real->step == real->low) real->step = real->high - real->low;
  real->log = false;
}

class SamplerConformance : public testing::TestWithParam<const char*> {
 protected:
  static bool IsGrid() { return absl::string_view(GetParam()) == "grid"; }
  static bool HasModel() {
    const absl::string_view type = GetParam();
    return type != "random" && type != "qmc" && type != "grid";
  }

  // `space` as the sampler can search it.
  static SearchSpace Suited(SearchSpace space) {
    if (!IsGrid()) return space;
    for (Parameter& parameter : space.parameters) MakeCountable(parameter.domain);
    return space;
  }

  // Whether the sampler has nothing left to propose after what `study` ran in `space`.
  static bool HasEnded(const SimulatedStudy& study, const SearchSpace& space) {
    if (!IsGrid()) return false;
    History history;
    for (const HistoryTrial& trial : study.trials()) {
      history.Apply({trial.number.value + 1, trial});
    }
    return GridIsUsedUp(history, space);
  }

  StudySpec Study(SearchSpace space, uint64_t seed = 1) const {
    StudySpec study;
    study.sampler = {.type = GetParam(), .seed = seed};
    study.space = std::move(space);
    return study;
  }
};

// `kinds`: 6 for all, 4 for those with values that can be counted.
Domain RandomDomain(Rng& rng, uint64_t kinds) {
  switch (rng.Below(kinds)) {
    case 0:
      return FloatDomain{.low = 0.5, .high = 3.0, .step = 0.1 + rng.Uniform()};
    case 1:
      return IntDomain{.low = -5, .high = static_cast<int64_t>(rng.Below(100)), .step = 3};
    case 2:
      return IntDomain{.low = 1, .high = 1 + static_cast<int64_t>(rng.Below(5000)), .log = true};
    case 4:
      return FloatDomain{.low = -1.0, .high = rng.Uniform() + 0.01};
    case 5:
      return FloatDomain{.low = 1e-9, .high = 1.0 + rng.Uniform(), .log = true};
    default: {
      CategoricalDomain domain;
      for (uint64_t i = 0; i <= rng.Below(5); ++i) domain.choices.push_back(absl::StrCat("c", i));
      return domain;
    }
  }
}

// A part of `domain` around a value of it.
Domain RandomPart(const Domain& domain, Rng& rng) {
  const ParamValue value = DrawUniform(domain, rng);
  if (std::holds_alternative<CategoricalDomain>(domain)) return CategoricalDomain{{value}};
  Domain part = domain;
  if (auto* real = std::get_if<FloatDomain>(&part)) {
    real->low = std::min(std::get<double>(value), real->low + 0.5 * (real->high - real->low));
    if (real->step.has_value()) real->low = std::get<double>(NearestValue(domain, real->low));
  } else {
    std::get<IntDomain>(part).low = std::get<int64_t>(value);
  }
  return part;
}

// Parameters with conditions and narrowings on the categorical ones among those before them.
SearchSpace RandomSpace(Rng& rng, uint64_t kinds) {
  SearchSpace space;
  std::vector<Condition> possible;
  const uint64_t count = 2 + rng.Below(8);
  for (uint64_t i = 0; i < count; ++i) {
    Parameter parameter = MakeParameter(absl::StrCat("p", i), RandomDomain(rng, kinds));
    parameter.modelled = rng.Below(8) != 0;
    if (!possible.empty() && rng.Below(3) == 0) {
      parameter.when = {possible[rng.Below(possible.size())]};
    }
    if (!possible.empty() && rng.Below(3) == 0) {
      space.narrowings.push_back({{possible[rng.Below(possible.size())]},
                                  parameter.name,
                                  RandomPart(parameter.domain, rng)});
    }
    if (std::holds_alternative<CategoricalDomain>(parameter.domain)) {
      possible.push_back({parameter.name, {DrawUniform(parameter.domain, rng)}});
    }
    space.parameters.push_back(std::move(parameter));
  }
  return space;
}

TEST_P(SamplerConformance, SuggestionsOfRandomSpacesAreValid) {
  Rng rng(77, 1);
  for (int round = 0; round < 60; ++round) {
    const SearchSpace space = RandomSpace(rng, IsGrid() ? 4 : 6);
    SCOPED_TRACE(absl::StrCat("space ", round));
    int64_t count = 0;
    SimulatedStudy study(Study(space), [&](const ParamMap&) -> std::optional<double> {
      if (++count % 7 == 0) return std::nullopt;
      return static_cast<double>((count * 37) % 11);
    });
    for (int i = 0; i < 25 && !HasEnded(study, space); ++i) {
      const absl::Status valid = ValidateParams(space, study.RunOne().params);
      ASSERT_TRUE(valid.ok()) << valid;
    }
  }
}

// As where memory is learned from a few trials, and the fit refuses what is unlike them.
TEST_P(SamplerConformance, ProposesNearWhatRanWhereNothingElseFits) {
  if (IsGrid()) GTEST_SKIP() << "a grid passes over what does not fit, and proposes nothing else";
  const SearchSpace space = {.parameters = {MakeParameter("width", IntDomain{1, 100000}),
                                            MakeParameter("rate", FloatDomain{0.0, 1.0})}};
  SimulatedStudy study(Study(space), [](const ParamMap& params) {
    return *FindInt(params, "width") % 7 + std::get<double>(params.at("rate"));
  });
  std::set<int64_t> widths;
  for (int i = 0; i < 12; ++i) widths.insert(*FindInt(study.RunOne().params, "width"));
  study.set_feasibility([&widths](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      const bool ran = widths.contains(*FindInt(params, "width"));
      fits.push_back({.fits = ran, .needed = ran ? GiB(1) : GiB(99)});
    }
    return fits;
  });
  std::set<ParamMap> proposed;
  for (int i = 0; i < 8; ++i) {
    const ParamMap& params = study.RunOne().params;
    EXPECT_TRUE(widths.contains(*FindInt(params, "width"))) << FormatParams(params);
    EXPECT_TRUE(proposed.insert(params).second) << "twice: " << FormatParams(params);
  }
}

TEST_P(SamplerConformance, OneValueDomainsAndNoParametersAtAll) {
  SearchSpace space;
  space.parameters = {MakeParameter("n", IntDomain{.low = 4, .high = 4}),
                      MakeParameter("c", CategoricalDomain{{true}}),
                      MakeParameter("s", FloatDomain{.low = 0.0, .high = 0.5, .step = 1.0}),
                      MakeParameter("i", IntDomain{.low = 3, .high = 3, .log = true})};
  const auto zero = [](const ParamMap&) -> std::optional<double> { return 0.0; };
  SimulatedStudy study(Study(space), zero);
  SimulatedStudy empty(Study({}), zero);
  for (int i = 0; i < (IsGrid() ? 1 : 15); ++i) {
    EXPECT_EQ(study.RunOne().params,
              (ParamMap{{"n", int64_t{4}}, {"c", true}, {"s", 0.0}, {"i", int64_t{3}}}));
    EXPECT_TRUE(empty.RunOne().params.empty());
  }
}

TEST_P(SamplerConformance, RangesAtTheLimits) {
  constexpr int64_t kMaxExact = int64_t{1} << 53;
  constexpr double kLargest = std::numeric_limits<double>::max();
  SearchSpace space;
  space.parameters = {
      MakeParameter("a", FloatDomain{.low = -kLargest, .high = kLargest}),
      MakeParameter("b", FloatDomain{.low = std::numeric_limits<double>::denorm_min(),
                                     .high = kLargest,
                                     .log = true}),
      MakeParameter("c", IntDomain{.low = -kMaxExact, .high = kMaxExact}),
      MakeParameter("d", IntDomain{.low = 1, .high = kMaxExact, .log = true})};
  space = Suited(space);
  ASSERT_TRUE(ValidateSpace(space).ok());
  SimulatedStudy study(Study(space), [](const ParamMap& params) -> std::optional<double> {
    return *FindDouble(params, "a");
  });
  for (int i = 0; i < 40; ++i) {
    const absl::Status valid = ValidateParams(space, study.RunOne().params);
    ASSERT_TRUE(valid.ok()) << valid;
  }
}

// Two values each.
TEST_P(SamplerConformance, RangesWithNothingBetweenTheirEnds) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  constexpr double kLargest = std::numeric_limits<double>::max();
  const double after_one = std::nextafter(1.0, 2.0);
  SearchSpace space;
  space.parameters = {
      MakeParameter("a", FloatDomain{.low = 1.0, .high = after_one}),
      MakeParameter("b", FloatDomain{.low = 1.0, .high = after_one, .log = true}),
      MakeParameter("c", FloatDomain{.low = 0.0, .high = kLeast}),
      MakeParameter("d", FloatDomain{.low = kLeast, .high = 2.0 * kLeast, .log = true}),
      MakeParameter("e", FloatDomain{.low = std::nextafter(kLargest, 0.0), .high = kLargest}),
      MakeParameter("f", FloatDomain{.low = -kLeast, .high = 0.0})};
  space = Suited(space);
  ASSERT_TRUE(ValidateSpace(space).ok()) << ValidateSpace(space);
  SimulatedStudy study(Study(space), [](const ParamMap& params) -> std::optional<double> {
    return *FindDouble(params, "a") - 1.0;
  });
  for (int i = 0; i < 30 && !HasEnded(study, space); ++i) {
    const absl::Status valid = ValidateParams(space, study.RunOne().params);
    ASSERT_TRUE(valid.ok()) << valid;
  }
}

TEST_P(SamplerConformance, ManyParameters) {
  SearchSpace space;
  for (int i = 0; i < 500; ++i) {
    space.parameters.push_back(MakeParameter(absl::StrCat("x", i), FloatDomain{}));
  }
  space = Suited(space);
  SimulatedStudy study(Study(space), [](const ParamMap& params) -> std::optional<double> {
    return *FindDouble(params, "x0");
  });
  for (int i = 0; i < 15; ++i) EXPECT_EQ(study.RunOne().params.size(), 500u);
}

// Ends of trials that leave a sampler little to hold on to.
std::vector<std::pair<const char*, HistoryTrial>> BadEnds() {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const MemoryObservation oom{GiB(16), true, GiB(16), {}};
  const auto beyond = [](double excess) {
    return HistoryTrial{.state = TrialState::kCompleted,
                        .losses = {1.0},
                        .violation = excess,
                        .excesses = {excess, -kUnbounded}};
  };
  return {
      {"failed", {.state = TrialState::kFailed}},
      {"cancelled", {.state = TrialState::kCancelled}},
      {"running", {.state = TrialState::kRunning, .intermediate = {{1, kNoNumber}}}},
      {"queued", {.state = TrialState::kQueued}},
      {"out of memory",
       {.state = TrialState::kPruned, .prune_reason = PruneReason::kOutOfMemory, .memory = {oom}}},
      {"out of host memory",
       {.state = TrialState::kPruned, .prune_reason = PruneReason::kHostOutOfMemory}},
      {"pruned", {.state = TrialState::kPruned, .prune_reason = PruneReason::kPruner}},
      {"pruned at NaN",
       {.state = TrialState::kPruned,
        .prune_reason = PruneReason::kPruner,
        .intermediate = {{1, kNoNumber}, {2, kUnbounded}, {3, kNoNumber}}}},
      {"NaN", {.state = TrialState::kCompleted, .losses = {kNoNumber}, .intermediate = {{3, 1.0}}}},
      {"infinite", {.state = TrialState::kCompleted, .losses = {kUnbounded}}},
      {"minus infinite", {.state = TrialState::kCompleted, .losses = {-kUnbounded}}},
      {"largest", {.state = TrialState::kCompleted, .losses = {kLargest}}},
      {"least", {.state = TrialState::kCompleted, .losses = {-kLargest}}},
      {"no loss", {.state = TrialState::kCompleted}},
      {"two objectives", {.state = TrialState::kCompleted, .losses = {1.0, kNoNumber}}},
      {"infeasible", beyond(0.5)},
      {"infeasible by far", beyond(kLargest)},
      {"infeasible without bound", beyond(kUnbounded)},
  };
}

// Of a study with two constraints.
class BadHistory : public SamplerConformance {
 protected:
  BadHistory() {
    SearchSpace space;
    space.parameters = {MakeParameter("x", FloatDomain{.low = -1.0, .high = 1.0}),
                        MakeParameter("n", IntDomain{.low = 1, .high = 3})};
    study_ = Study(Suited(std::move(space)));
    study_.constraints = {{.metric = "cost", .at_most = 1.0}, {.metric = "time", .at_most = 1.0}};
  }

  void ExpectAValidSuggestionAfter(const std::vector<HistoryTrial>& trials) const {
    const auto sampler = MakeSampler(study_);
    int64_t count = 0;
    for (HistoryTrial trial : trials) {
      trial.number = TrialNumber{count};
      sampler->Observe({++count, trial});
    }
    const auto suggestion = sampler->Suggest({TrialNumber{count}, study_.space, GiB(16), nullptr});
    ASSERT_TRUE(suggestion.ok()) << suggestion.status();
    EXPECT_TRUE(ValidateParams(study_.space, suggestion->params).ok());
    EXPECT_EQ(suggestion->history_sequence, count);
    EXPECT_FALSE(std::isnan(suggestion->score.value_or(0.0)));
    EXPECT_EQ(suggestion->reason.find("nan"), std::string::npos) << suggestion->reason;
  }

  StudySpec study_;
};

TEST_P(BadHistory, OfOneKindGivesAValidSuggestion) {
  const ParamMap points[] = {{{"x", 0.25}, {"n", int64_t{2}}},  // the same again and again
                             {{"x", 70.0}, {"other", true}},    // outside, unknown, missing
                             {{"x", 0.5}, {"n", INT64_MIN}},    // at the limits
                             {{"x", 0.5}, {"n", INT64_MAX}},
                             {{"x", std::string("text")}}};  // of another type
  for (const auto& [name, end] : BadEnds()) {
    for (const ParamMap& params : points) {
      SCOPED_TRACE(absl::StrCat("all ", name, ", ", FormatParams(params)));
      HistoryTrial trial = end;
      trial.params = params;
      ExpectAValidSuggestionAfter(std::vector<HistoryTrial>(30, trial));
    }
  }
}

// Each kind together with good trials, at one point and at many.
TEST_P(BadHistory, BesideGoodTrialsGivesAValidSuggestion) {
  for (const auto& [name, end] : BadEnds()) {
    for (const bool same_point : {true, false}) {
      SCOPED_TRACE(absl::StrCat(name, same_point ? ", one point" : ", many points"));
      std::vector<HistoryTrial> trials;
      for (int i = 0; i < 30; ++i) {
        HistoryTrial trial{.state = TrialState::kCompleted,
                           .losses = {static_cast<double>(i % 7)},
                           .excesses = {-kUnbounded, -0.5}};
        if (i % 3 == 0) trial = end;
        const double x = same_point ? 0.25 : i / 32.0;
        trial.params = {{"x", x}, {"n", int64_t{same_point ? 2 : 1 + i % 3}}};
        trials.push_back(std::move(trial));
      }
      ExpectAValidSuggestionAfter(trials);
    }
  }
}

TEST_P(BadHistory, OfAllKindsGivesAValidSuggestion) {
  std::vector<HistoryTrial> trials;
  for (int i = 0; i < 4; ++i) {
    for (const auto& [name, end] : BadEnds()) {
      trials.push_back(end);
      trials.back().params = {{"x", (i % 3) / 4.0}, {"n", int64_t{1 + i % 3}}};
    }
  }
  ExpectAValidSuggestionAfter(trials);
}

TEST_P(SamplerConformance, NoHistoryGivesAValidSuggestion) {
  SearchSpace space;
  space.parameters = {MakeParameter("x", FloatDomain{.low = -1.0, .high = 1.0})};
  space = Suited(space);
  StudySpec study = Study(space);
  study.sampler.startup_trials = 0;
  const auto suggestion = MakeSampler(study)->Suggest({TrialNumber{0}, space, GiB(16), nullptr});
  ASSERT_TRUE(suggestion.ok()) << suggestion.status();
  EXPECT_TRUE(ValidateParams(space, suggestion->params).ok());
  EXPECT_EQ(suggestion->history_sequence, 0);
}

// Two trials run at any time, the first fails.
TEST_P(SamplerConformance, NoConfigurationIsProposedTwiceWhileThereAreOthers) {
  SearchSpace space;
  space.parameters = {MakeParameter("n", IntDomain{.low = 1, .high = 3}),
                      MakeParameter("k", CategoricalDomain{{true, false}}),
                      MakeParameter("x", FloatDomain{.low = 0.0, .high = 1.0, .step = 0.5})};
  const StudySpec study = Study(space);
  const auto sampler = MakeSampler(study);
  AskContext context{TrialNumber{0}, space, GiB(16), nullptr};
  std::vector<HistoryTrial> trials;
  std::set<ParamMap> proposed;
  int64_t sequence = 0;
  for (int64_t number = 0; number < 18; ++number) {
    context.number = TrialNumber{number};
    const auto suggestion = sampler->Suggest(context);
    ASSERT_TRUE(suggestion.ok()) << number << ": " << suggestion.status();
    EXPECT_TRUE(proposed.insert(suggestion->params).second) << FormatParams(suggestion->params);
    trials.push_back({.number = context.number, .params = suggestion->params});
    sampler->Observe({++sequence, trials.back()});
    if (number == 0) continue;
    HistoryTrial ended = trials[trials.size() - 2];
    ended.state = number == 1 ? TrialState::kFailed : TrialState::kCompleted;
    if (number > 1) ended.losses = {static_cast<double>(*FindInt(ended.params, "n"))};
    sampler->Observe({++sequence, ended});
  }
  context.number = TrialNumber{18};
  const auto more = sampler->Suggest(context);
  if (IsGrid()) {
    EXPECT_EQ(more.status().code(), absl::StatusCode::kOutOfRange);
    return;
  }
  EXPECT_EQ(more->params, trials.front().params) << "what failed is tried once more";
  sampler->Observe({++sequence, {.number = context.number, .params = more->params}});
  context.number = TrialNumber{19};
  EXPECT_EQ(sampler->Suggest(context).status().code(), absl::StatusCode::kOutOfRange);
  context.repetition = Repetition::kWhereAllTried;
  const auto repeated = sampler->Suggest(context);
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_TRUE(proposed.contains(repeated->params));
  EXPECT_TRUE(repeated->all_tried);
}

// Losses that are no numbers are mixed with those that are, and do not outshine them.
TEST_P(SamplerConformance, LossesThatAreNotFiniteAreTheWorst) {
  if (IsGrid()) GTEST_SKIP() << "a grid asks for no losses";
  SearchSpace space;
  space.parameters = {MakeParameter("x", FloatDomain{.low = 0.0, .high = 1.0})};
  SimulatedStudy study(Study(space), [](const ParamMap& params) -> SimulatedResult {
    const double x = *FindDouble(params, "x");
    if (x > 0.75) return kNoNumber;
    return x > 0.5 ? kUnbounded : x;
  });
  int64_t num_low = 0;
  for (int i = 0; i < 60; ++i) num_low += *FindDouble(study.RunOne().params, "x") < 0.25 ? 1 : 0;
  if (!HasModel()) {
    EXPECT_GT(num_low, 5);
    return;
  }
  EXPECT_GT(num_low, 30);
}

SearchSpace MixedSpace() {
  SearchSpace space;
  space.parameters = {
      MakeParameter("optimizer", CategoricalDomain{{std::string("sgd"), std::string("adam")}}),
      MakeParameter("lr", FloatDomain{.low = 1e-5, .high = 1e-1, .log = true}),
      MakeParameter("momentum", FloatDomain{.low = 0.0, .high = 0.99}),
      MakeParameter("layers", IntDomain{.low = 1, .high = 6})};
  space.parameters[2].when = {{"optimizer", {std::string("sgd")}}};
  return space;
}

std::optional<double> ConformanceLoss(const ParamMap& params) {
  const double lr = *FindDouble(params, "lr");
  if (lr > 0.05) return std::nullopt;
  return lr + 0.01 * static_cast<double>(*FindInt(params, "layers"));
}

// Folding events one by one, in any order that keeps each trial's own, equals a rebuild.
TEST_P(SamplerConformance, ARebuiltSamplerProposesTheSame) {
  const StudySpec study = Study(Suited(MixedSpace()), 9);
  const auto running = MakeSampler(study);
  std::vector<HistoryTrial> stored;
  Rng shuffle(3, 3);
  int64_t sequence = 0;
  for (int64_t number = 0; number < 200; ++number) {
    const AskContext context{TrialNumber{number}, study.space, GiB(16), nullptr};
    const auto suggestion = running->Suggest(context);
    ASSERT_TRUE(suggestion.ok());
    const auto rebuilt = MakeSampler(study);
    std::vector<HistoryTrial> shuffled = stored;
    for (size_t i = shuffled.size(); i > 1; --i)
      std::swap(shuffled[i - 1], shuffled[shuffle.Below(i)]);
    for (const HistoryTrial& trial : shuffled) rebuilt->Observe({sequence, trial});
    const auto again = rebuilt->Suggest(context);
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(again->params, suggestion->params) << "trial " << number;
    ASSERT_EQ(again->score, suggestion->score);
    ASSERT_EQ(again->history_sequence, suggestion->history_sequence);

    HistoryTrial trial{.number = context.number, .params = suggestion->params};
    running->Observe({++sequence, trial});
    // Every fifth trial stays open.
    if (number % 5 != 0) {
      const std::optional<double> loss = ConformanceLoss(trial.params);
      trial.state = loss.has_value() ? TrialState::kCompleted : TrialState::kPruned;
      if (loss.has_value()) trial.losses = {*loss};
      if (!loss.has_value()) trial.memory = {{GiB(16), true, GiB(16), {}}};
      running->Observe({++sequence, trial});
    }
    stored.push_back(trial);
  }
}

TEST_P(SamplerConformance, SuggestionsDependOnSeedAndNumber) {
  if (IsGrid()) GTEST_SKIP() << "a grid has its own order";
  const SimulatedStudy a(Study(MixedSpace(), 1), ConformanceLoss);
  const SimulatedStudy same(Study(MixedSpace(), 1), ConformanceLoss);
  const SimulatedStudy other(Study(MixedSpace(), 2), ConformanceLoss);
  EXPECT_EQ(a.Suggest(5).params, same.Suggest(5).params);
  EXPECT_NE(a.Suggest(5).params, a.Suggest(6).params);
  EXPECT_NE(a.Suggest(5).params, other.Suggest(5).params);
}

TEST_P(SamplerConformance, TheFirstTrialTakesTheDefaultsOnce) {
  if (IsGrid()) GTEST_SKIP() << "a grid has its own order";
  SearchSpace space = MixedSpace();
  space.parameters[0].default_value = std::string("sgd");
  space.parameters[2].default_value = 0.9;
  space.parameters[3].default_value = int64_t{3};
  SimulatedStudy study(Study(space), ConformanceLoss);
  const ParamMap first = study.RunOne().params;
  EXPECT_EQ(first.at("optimizer"), ParamValue(std::string("sgd")));
  EXPECT_EQ(first.at("momentum"), ParamValue(0.9));
  EXPECT_EQ(first.at("layers"), ParamValue(int64_t{3}));
  std::set<ParamValue> layers;
  for (int i = 0; i < 9; ++i) layers.insert(study.RunOne().params.at("layers"));
  EXPECT_GT(layers.size(), 1u);
}

// A trial that a user enqueued does not use up the defaults, unless it has them.
TEST_P(SamplerConformance, AnEnqueuedTrialLeavesTheDefaultsToTheSampler) {
  if (IsGrid()) GTEST_SKIP() << "a grid has its own order";
  SearchSpace space = MixedSpace();
  space.parameters[3].default_value = int64_t{3};
  for (const int64_t enqueued : {3, 6}) {
    const auto sampler = MakeSampler(Study(space));
    sampler->Observe({1, {.number = TrialNumber{0}, .params = {{"layers", enqueued}}}});
    bool always_default = true;
    for (int64_t number = 1; number < 12; ++number) {
      const auto suggestion = sampler->Suggest({TrialNumber{number}, space, GiB(16), nullptr});
      always_default &= suggestion->params.at("layers") == ParamValue(int64_t{3});
    }
    EXPECT_EQ(always_default, enqueued != 3);
  }
}

TEST_P(SamplerConformance, DefaultsThatDoNotFitAreDrawn) {
  SearchSpace space = Suited(MixedSpace());
  space.parameters[3].default_value = int64_t{6};
  SimulatedStudy study(Study(space), ConformanceLoss);
  study.set_feasibility([](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      fits.push_back({.fits = *FindInt(params, "layers") < 4, .needed = GiB(1)});
    }
    return fits;
  });
  for (int i = 0; i < 30; ++i) EXPECT_LT(*FindInt(study.RunOne().params, "layers"), 4);
}

TEST_P(SamplerConformance, ContradictingNarrowingsAreNamed) {
  SearchSpace space;
  space.parameters = {MakeParameter("a", CategoricalDomain{{true}}),
                      MakeParameter("b", IntDomain{.low = 0, .high = 9})};
  space.narrowings = {{{{"a", {true}}}, "b", IntDomain{.low = 0, .high = 3}},
                      {{{"a", {true}}}, "b", IntDomain{.low = 5, .high = 9}}};
  const auto sampler = MakeSampler(Study(space));
  for (int64_t i = 0; i < 12; ++i) {
    const auto suggestion = sampler->Suggest({TrialNumber{i}, space, GiB(16), nullptr});
    ASSERT_EQ(suggestion.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(suggestion.status().message().find("b no value"), absl::string_view::npos)
        << suggestion.status();
    sampler->Observe(
        {i + 1, {.number = TrialNumber{i}, .state = TrialState::kCompleted, .losses = {0.0}}});
  }
}

TEST_P(SamplerConformance, WhereNothingFitsTheLeastNeedIsNamed) {
  const StudySpec study = Study(Suited(MixedSpace()));
  const auto sampler = MakeSampler(study);
  AskContext context{TrialNumber{0}, study.space, GiB(2), nullptr};
  context.feasibility = [](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      fits.push_back({.fits = false, .needed = GiB(2 + *FindInt(params, "layers"))});
    }
    return fits;
  };
  for (int64_t i = 0; i < 12; ++i) {
    const auto suggestion = sampler->Suggest(context);
    ASSERT_EQ(suggestion.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(suggestion.status().message().find(
                  "capacity of 2.00 GiB: the least demanding needs 3.00 GiB"),
              absl::string_view::npos)
        << suggestion.status();
    sampler->Observe(
        {i + 1, {.number = TrialNumber{i}, .state = TrialState::kCompleted, .losses = {0.0}}});
  }
}

// One configuration in ten thousand fits.
TEST_P(SamplerConformance, FindsTheNeedleInTheHaystack) {
  SearchSpace space;
  for (const char* name : {"a", "b", "c", "d"}) {
    space.parameters.push_back(MakeParameter(name, IntDomain{.low = 1, .high = 10}));
  }
  SimulatedStudy study(Study(space), [](const ParamMap&) -> std::optional<double> { return 1.0; });
  study.set_feasibility([](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      int64_t product = 1;
      for (const auto& [name, value] : params) product *= std::get<int64_t>(value);
      fits.push_back({.fits = product == 1, .needed = GiB(product)});
    }
    return fits;
  });
  for (int i = 0; i < (IsGrid() ? 1 : 14); ++i) {
    for (const auto& [name, value] : study.RunOne().params) {
      EXPECT_EQ(value, ParamValue(int64_t{1})) << name;
    }
  }
}

// For people: who proposed a trial is said elsewhere.
TEST_P(SamplerConformance, EverySuggestionSaysWhy) {
  SimulatedStudy study(Study(Suited(MixedSpace())), ConformanceLoss);
  for (int64_t i = 0; i < 30; ++i) {
    const Suggestion suggestion = study.Suggest(i);
    EXPECT_NE(suggestion.reason, "") << i;
    EXPECT_EQ(suggestion.reason.find('\n'), std::string::npos);
    const bool first = absl::StartsWith(suggestion.reason, "one of the first 10 trials");
    EXPECT_EQ(first, HasModel() && i < 10) << suggestion.reason;
    study.RunOne();
  }
}

// Twenty configurations, of which twelve fit, and a seed that no model knows.
SearchSpace SmallSpace() {
  SearchSpace space;
  space.parameters = {MakeParameter("a", IntDomain{.low = 0, .high = 4}),
                      MakeParameter("seed", IntDomain{.low = 1, .high = 1 << 30}),
                      MakeParameter("b", IntDomain{.low = 0, .high = 3})};
  space.parameters[1].modelled = false;
  return space;
}

std::vector<memory::Fit> FitsBelowThree(std::span<const ParamMap> candidates) {
  std::vector<memory::Fit> fits;
  for (const ParamMap& params : candidates) {
    fits.push_back({.fits = *FindInt(params, "a") < 3, .needed = GiB(*FindInt(params, "a") + 1)});
  }
  return fits;
}

std::optional<double> SmallLoss(const ParamMap& params) {
  return static_cast<double>(std::abs(*FindInt(params, "a") - 1) + *FindInt(params, "b"));
}

// Beyond the first trials, which are random, none is had twice while another is left.
TEST_P(SamplerConformance, AnotherSeedMakesNoConfigurationNew) {
  if (absl::string_view(GetParam()) == "random") GTEST_SKIP() << "knows no trials";
  StudySpec spec = Study(SmallSpace());
  spec.sampler.startup_trials = 4;
  for (const bool bounded : {false, true}) {
    SCOPED_TRACE(bounded);
    SimulatedStudy study(spec, SmallLoss);
    if (bounded) study.set_feasibility(FitsBelowThree);
    const size_t num_configurations = bounded ? 12 : 20;
    std::set<std::pair<ParamValue, ParamValue>> had;
    const auto run = [&] {
      const ParamMap& params = study.RunOne().params;
      return had.emplace(params.at("a"), params.at("b")).second;
    };
    for (int i = 0; i < 4; ++i) run();
    while (had.size() < num_configurations) ASSERT_TRUE(run()) << had.size() << " had";
    if (IsGrid()) continue;
    std::set<ParamValue> seeds;
    for (int i = 0; i < 20; ++i) {
      EXPECT_FALSE(run());
      seeds.insert(study.trials().back().params.at("seed"));
    }
    EXPECT_GT(seeds.size(), 18u);
  }
}

// Where all has been tried, a model repeats what is good, with other seeds.
TEST_P(SamplerConformance, RepeatsWhatIsGood) {
  if (!HasModel()) GTEST_SKIP() << "knows nothing of losses";
  StudySpec spec = Study(SmallSpace());
  spec.sampler.startup_trials = 4;
  SimulatedStudy study(spec, SmallLoss);
  for (int i = 0; i < 30; ++i) study.RunOne();
  double sum = 0.0;
  for (int i = 0; i < 20; ++i) sum += *SmallLoss(study.RunOne().params);
  EXPECT_LT(sum / 20.0, 2.1) << "2.7 on average over the space";
}

const auto kAllSamplers = testing::Values("auto", "cma-es", "gp", "grid", "qmc", "random", "tpe",
                                          "tpe-joint", "tpe-group", "tpe-univariate");

std::string NameOf(const testing::TestParamInfo<const char*>& instance) {
  std::string name = instance.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Samplers, SamplerConformance, kAllSamplers, NameOf);
INSTANTIATE_TEST_SUITE_P(Samplers, BadHistory, kAllSamplers, NameOf);

}  // namespace
}  // namespace hpo::sampler
