#include "sampler/tpe/tpe_sampler.h"

#include <cmath>
#include <regex>
#include <set>
#include <thread>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

StudySpec SmoothStudy(const std::string& sampler, uint64_t seed) {
  StudySpec study;
  study.sampler = {.type = sampler, .seed = seed};
  study.space.parameters = {MakeParameter("x", FloatDomain{.low = -5.0, .high = 10.0}),
                            MakeParameter("y", FloatDomain{.low = 0.0, .high = 15.0})};
  return study;
}

double Branin(const ParamMap& params) {
  const double x = *FindDouble(params, "x");
  const double y = *FindDouble(params, "y");
  const double pi = std::acos(-1.0);
  const double valley = y - 5.1 * x * x / (4.0 * pi * pi) + 5.0 * x / pi - 6.0;
  return valley * valley + 10.0 * (1.0 - 1.0 / (8.0 * pi)) * std::cos(x) + 10.0;
}

double MedianBest(const std::function<StudySpec(uint64_t seed)>& make,
                  const SimulatedObjective& objective, int num_trials) {
  std::vector<double> best;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedStudy study(make(seed), objective);
    for (int i = 0; i < num_trials; ++i) study.RunOne();
    best.push_back(study.best_loss());
  }
  return MedianOf(best);
}

TEST(TpeSampler, BeatsRandomOnASmoothFunction) {
  const auto best = [](const std::string& sampler) {
    return MedianBest([&](uint64_t seed) { return SmoothStudy(sampler, seed); }, Branin, 80);
  };
  constexpr double kOptimum = 0.397887;
  EXPECT_LT(best("tpe") - kOptimum, 0.25 * (best("random") - kOptimum));
}

StudySpec MixedStudy(const std::string& sampler, uint64_t seed) {
  StudySpec study;
  study.sampler = {.type = sampler, .seed = seed};
  CategoricalDomain optimizers;
  for (const char* name : {"adam", "sgd", "lion"}) optimizers.choices.push_back(std::string(name));
  study.space.parameters = {
      MakeParameter("optimizer", optimizers),
      MakeParameter("lr", FloatDomain{.low = 1e-6, .high = 1e-1, .log = true}),
      MakeParameter("momentum", FloatDomain{.low = 0.0, .high = 1.0}),
      MakeParameter("length", IntDomain{.low = 128, .high = 512, .step = 32}),
      MakeParameter("seed", IntDomain{.low = 1, .high = 65535})};
  study.space.parameters[2].when = {{"optimizer", {std::string("sgd")}}};
  study.space.parameters[4].modelled = false;
  return study;
}

// The best learning rate depends on the optimizer; one of them is better than the others.
double MixedLoss(const ParamMap& params) {
  const double lr = std::log10(*FindDouble(params, "lr"));
  const double length = static_cast<double>(*FindInt(params, "length")) / 512.0;
  const bool sgd = *FindString(params, "optimizer") == "sgd";
  const double momentum = FindDouble(params, "momentum").value_or(0.0);
  const double of_optimizer = sgd ? 0.2 * std::pow(lr + 2.0, 2) + std::pow(momentum - 0.9, 2)
                                  : 0.3 + 0.2 * std::pow(lr + 4.0, 2);
  return of_optimizer + std::pow(length - 0.75, 2);
}

TEST(TpeSampler, BeatsRandomOnAMixedConditionalSpace) {
  const auto best = [](const std::string& sampler) {
    return MedianBest([&](uint64_t seed) { return MixedStudy(sampler, seed); }, MixedLoss, 80);
  };
  EXPECT_LT(best("tpe"), 0.5 * best("random"));
}

TEST(TpeSampler, RandomUntilTheStartupTrialsHaveFinished) {
  StudySpec study = SmoothStudy("tpe", 1);
  study.sampler.startup_trials = 3;
  SimulatedStudy simulated(study, Branin);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(simulated.Suggest(i).sampler, "random");
    EXPECT_FALSE(simulated.Suggest(i).score.has_value());
    simulated.RunOne();
  }
  EXPECT_EQ(simulated.Suggest(3).sampler, "tpe");
  EXPECT_TRUE(simulated.Suggest(3).score.has_value());
}

TEST(TpeSampler, NeedsNoStartupTrialsAtAll) {
  StudySpec study = SmoothStudy("tpe", 1);
  study.sampler.startup_trials = 0;
  SimulatedStudy simulated(study, Branin);
  EXPECT_EQ(simulated.RunOne().losses.size(), 1u);
  EXPECT_EQ(simulated.Suggest(1).sampler, "tpe");
}

StudySpec LineStudy() {
  StudySpec study;
  study.sampler = {.type = "tpe", .seed = 1, .startup_trials = 0};
  study.space.parameters = {MakeParameter("x", FloatDomain{.low = -5.0, .high = 10.0})};
  return study;
}

// A history of trials at given x with given ends.
std::unique_ptr<Sampler> WithTrials(const std::vector<std::pair<double, HistoryTrial>>& trials) {
  const StudySpec study = LineStudy();
  std::unique_ptr<Sampler> sampler = MakeSampler(study);
  int64_t number = 0;
  for (const auto& [x, prototype] : trials) {
    HistoryTrial trial = prototype;
    trial.number = TrialNumber{number};
    trial.params = {{"x", x}};
    sampler->Observe({++number, trial});
  }
  return sampler;
}

// Mean x of suggestions for many trial numbers.
double MeanX(const Sampler& sampler) {
  const SearchSpace space = LineStudy().space;
  double sum = 0.0;
  constexpr int kSuggestions = 100;
  for (int64_t i = 0; i < kSuggestions; ++i) {
    sum +=
        *FindDouble(sampler.Suggest({TrialNumber{1000 + i}, space, GiB(16), nullptr})->params, "x");
  }
  return sum / kSuggestions;
}

HistoryTrial Done(double loss) { return {.state = TrialState::kCompleted, .losses = {loss}}; }

// The better the further left. How many trials run at once decides how near to the best the search
// stays, and nothing else of them does: not where they run.
TEST(TpeSampler, SeeksFewerOfTheBestTheMoreRunBeside) {
  const auto mean_beside = [](int num_running, double at) {
    std::vector<std::pair<double, HistoryTrial>> trials;
    for (int i = 0; i < 100; ++i) trials.emplace_back(-5.0 + 0.15 * i, Done(i));
    for (int i = 0; i < num_running; ++i) trials.emplace_back(at, HistoryTrial{});
    return MeanX(*WithTrials(trials));
  };
  const double alone = mean_beside(0, 0.0);
  const double few = mean_beside(10, 0.0);
  const double many = mean_beside(100, 0.0);
  EXPECT_LT(few, alone);
  EXPECT_LT(many, few);
  EXPECT_EQ(mean_beside(100, -5.0), many);
  EXPECT_EQ(mean_beside(100, 10.0), many);
}

// Fewer candidates to choose from: the best of them scores less.
TEST(TpeSampler, ChoosesAmongFewerCandidatesTheMoreRunBeside) {
  const auto mean_score_beside = [](int num_running) {
    // Too few to differ in what is good.
    std::vector<std::pair<double, HistoryTrial>> trials;
    for (int i = 0; i < 4; ++i) trials.emplace_back(-5.0 + 4.0 * i, Done(i));
    for (int i = 0; i < num_running; ++i) trials.emplace_back(0.0, HistoryTrial{});
    const auto sampler = WithTrials(trials);
    double sum = 0.0;
    for (int64_t i = 0; i < 50; ++i) {
      sum += *sampler->Suggest({TrialNumber{1000 + i}, LineStudy().space, GiB(16), nullptr})->score;
    }
    return sum;
  };
  EXPECT_LT(mean_score_beside(21), mean_score_beside(0));
}

// All that are asked for before one of them ends, on a grid with room for them.
TEST(TpeSampler, NoTwoInFlightAreTheSame) {
  StudySpec study = LineStudy();
  study.space.parameters = {MakeParameter("x", IntDomain{0, 200})};
  const auto sampler = MakeSampler(study);
  int64_t number = 0;
  const auto observe = [&](HistoryTrial trial) {
    trial.number = TrialNumber{number};
    sampler->Observe({++number, std::move(trial)});
  };
  for (int64_t x = 0; x <= 200; x += 10) {
    HistoryTrial done = Done(std::abs(static_cast<double>(x) - 100.0));
    done.params = {{"x", x}};
    observe(done);
  }
  std::set<int64_t> in_flight;
  for (int i = 0; i < 64; ++i) {
    const auto suggestion = sampler->Suggest({TrialNumber{number}, study.space, GiB(16), nullptr});
    ASSERT_TRUE(suggestion.ok());
    in_flight.insert(*FindInt(suggestion->params, "x"));
    observe({.params = suggestion->params});
  }
  EXPECT_EQ(in_flight.size(), 64u);
  EXPECT_FALSE(in_flight.contains(100));
}

TEST(TpeSampler, CancelledAndQueuedTrialsSayNothing) {
  std::vector<std::pair<double, HistoryTrial>> trials;
  for (int i = 0; i < 10; ++i) trials.emplace_back(-5.0 + 1.5 * i, Done(i));
  const double alone = MeanX(*WithTrials(trials));
  for (const TrialState state : {TrialState::kCancelled, TrialState::kQueued}) {
    trials.emplace_back(8.0, HistoryTrial{.state = state});
  }
  EXPECT_EQ(MeanX(*WithTrials(trials)), alone);
}

// Good at the left end, where trials fail: the search leaves it, but for no other reason than that.
TEST(TpeSampler, FailedTrialsRepel) {
  std::vector<std::pair<double, HistoryTrial>> trials;
  for (int i = 0; i < 10; ++i) trials.emplace_back(-5.0 + 1.5 * i, Done(i));
  const double alone = MeanX(*WithTrials(trials));
  for (int i = 0; i < 8; ++i) {
    trials.emplace_back(-5.0 + 0.1 * i, HistoryTrial{.state = TrialState::kFailed});
  }
  EXPECT_GT(MeanX(*WithTrials(trials)), alone + 0.5);
}

// Five values, of which the best have been tried: while another is left, none of them is proposed.
TEST(TpeSampler, ProposesWhatNoTrialHasHad) {
  StudySpec study = LineStudy();
  study.space.parameters = {MakeParameter("x", IntDomain{0, 4})};
  const auto sampler = MakeSampler(study);
  for (int64_t x = 0; x < 4; ++x) {
    sampler->Observe({x + 1,
                      {.number = TrialNumber{x},
                       .params = {{"x", x}},
                       .state = TrialState::kCompleted,
                       .losses = {static_cast<double>(x)}}});
  }
  std::map<int64_t, int> counts;
  for (int64_t i = 0; i < 100; ++i) {
    const auto suggestion = sampler->Suggest({TrialNumber{100 + i}, study.space, GiB(16), nullptr});
    ++counts[*FindInt(suggestion->params, "x")];
  }
  EXPECT_EQ(counts[4], 100);
}

// After 200 trials all over the space of numbers in [0, 1], of choices the first: those at two
// opposite corners are good.
std::unique_ptr<Sampler> WithGoodAtTwoCorners(const StudySpec& study) {
  auto sampler = MakeSampler(study);
  Rng rng(1, 1);
  for (int64_t i = 0; i < 200; ++i) {
    const bool good = i % 10 == 0;
    const double corner = i % 20 == 0 ? 0.1 : 0.9;
    ParamMap params;
    for (const Parameter& parameter : study.space.parameters) {
      const auto* choices = std::get_if<CategoricalDomain>(&parameter.domain);
      const auto place = [&] { return good ? corner + 0.02 * rng.Uniform() : rng.Uniform(); };
      params[parameter.name] = choices != nullptr ? choices->choices[0] : ParamValue(place());
    }
    sampler->Observe({i + 1,
                      {.number = TrialNumber{i},
                       .params = std::move(params),
                       .state = TrialState::kCompleted,
                       .losses = {good ? 0.0 : 1.0}}});
  }
  return sampler;
}

// Of trials all over a square those at two opposite corners are good: what is good together is
// known by the joint density alone.
TEST(TpeSampler, TakesParametersTogetherOrEachForItself) {
  for (const std::string type : {"tpe-joint", "tpe-univariate"}) {
    StudySpec study;
    study.sampler = {.type = type, .seed = 1};
    study.space.parameters = {MakeParameter("x", FloatDomain{.low = 0.0, .high = 1.0}),
                              MakeParameter("y", FloatDomain{.low = 0.0, .high = 1.0})};
    const auto sampler = WithGoodAtTwoCorners(study);
    int together = 0;
    for (int64_t i = 0; i < 200; ++i) {
      const auto suggestion =
          sampler->Suggest({TrialNumber{200 + i}, study.space, GiB(16), nullptr});
      EXPECT_EQ(suggestion->sampler, type);
      const double x = *FindDouble(suggestion->params, "x");
      const double y = *FindDouble(suggestion->params, "y");
      together += (x < 0.5) == (y < 0.5);
    }
    const bool joint = type == "tpe-joint";
    EXPECT_GE(together, joint ? 190 : 60);
    EXPECT_LE(together, joint ? 200 : 140);
  }
}

// Of trials of one choice all over a cube those at two opposite corners are good. The parameters
// that exist with the choice are a group, the one that always exists is none of it.
TEST(TpeSampler, TakesThoseOfAGroupTogether) {
  for (const std::string type : {"tpe-joint", "tpe-group"}) {
    StudySpec study;
    study.sampler = {.type = type, .seed = 1};
    CategoricalDomain kinds;
    kinds.choices = {std::string("a"), std::string("b")};
    study.space.parameters.push_back(MakeParameter("kind", kinds));
    for (const std::string name : {"x", "y", "z"}) {
      study.space.parameters.push_back(MakeParameter(name, FloatDomain{.low = 0.0, .high = 1.0}));
      if (name != "z") {
        study.space.parameters.back().when = {{.name = "kind", .values = {kinds.choices[0]}}};
      }
    }
    const auto sampler = WithGoodAtTwoCorners(study);
    int x_with_y = 0;
    int x_with_z = 0;
    for (int64_t i = 0; i < 200; ++i) {
      const auto suggestion =
          sampler->Suggest({TrialNumber{200 + i}, study.space, GiB(16), nullptr});
      const auto low = [&](const char* name) {
        return FindDouble(suggestion->params, name).value_or(0.0) < 0.5;
      };
      x_with_y += low("x") == low("y");
      x_with_z += low("x") == low("z");
    }
    EXPECT_GE(x_with_y, 180) << type;
    const bool grouped = type == "tpe-group";
    EXPECT_GE(x_with_z, grouped ? 60 : 180);
    EXPECT_LE(x_with_z, grouped ? 140 : 200);
  }
}

// The score is the logarithm of a ratio.
TEST(TpeSampler, SaysHowMuchLikelierAmongTheGood) {
  std::vector<std::pair<double, HistoryTrial>> trials;
  for (int i = 0; i < 20; ++i) trials.emplace_back(-5.0 + 0.7 * i, Done(i));
  const StudySpec study = LineStudy();
  const auto ask = [&] {
    return *WithTrials(trials)->Suggest({TrialNumber{40}, study.space, GiB(16), nullptr});
  };
  const Suggestion good = ask();
  EXPECT_EQ(good.reason, absl::StrFormat("decided by quality: %.3g times as likely among the "
                                         "good trials as among all",
                                         std::exp(*good.score)));
  trials.emplace_back(9.0, HistoryTrial{.state = TrialState::kFailed});
  EXPECT_TRUE(std::regex_match(
      ask().reason,
      std::regex("decided by (quality|failures): .* as among all \\(quality .*, failures .*\\)")))
      << ask().reason;
}

// Host memory, dirty cards and cards smaller than the asking one teach neither quality nor memory.
TEST(TpeSampler, OutOfMemoryThatSaysNothingOfThisCapacityLeavesQualityAlone) {
  std::vector<std::pair<double, HistoryTrial>> trials;
  for (int i = 0; i < 10; ++i) trials.emplace_back(-5.0 + 1.5 * i, Done(i));
  const double alone = MeanX(*WithTrials(trials));
  trials.emplace_back(-4.0, HistoryTrial{.state = TrialState::kPruned,
                                         .prune_reason = PruneReason::kHostOutOfMemory});
  trials.emplace_back(-4.0, HistoryTrial{.state = TrialState::kPruned,
                                         .prune_reason = PruneReason::kOutOfMemory,
                                         .memory = {{GiB(8), true, GiB(8), {}}}});
  EXPECT_EQ(MeanX(*WithTrials(trials)), alone);
}

// Known feasibility restricts candidates, and the best that fit are still sought.
TEST(TpeSampler, SeeksTheBestThatFits) {
  StudySpec spec = SmoothStudy("tpe", 4);
  SimulatedStudy study(spec, [](const ParamMap& params) -> std::optional<double> {
    return -*FindDouble(params, "x");
  });
  study.set_feasibility([](std::span<const ParamMap> candidates) {
    std::vector<memory::Fit> fits;
    for (const ParamMap& params : candidates) {
      const double x = *FindDouble(params, "x");
      fits.push_back({.fits = x <= 3.0, .needed = MiB(1000 + static_cast<int64_t>(10 * x))});
    }
    return fits;
  });
  for (int i = 0; i < 40; ++i) {
    EXPECT_LE(*FindDouble(study.RunOne().params, "x"), 3.0);
  }
  EXPECT_LT(study.best_loss(), -2.7);
}

// Choices that were added to a running study, and models that another worker has.
TEST(TpeSampler, ChoicesComeAndGo) {
  StudySpec spec = MixedStudy("tpe", 2);
  const auto sampler = MakeSampler(spec);
  for (int64_t i = 0; i < 30; ++i) {
    const auto suggestion = sampler->Suggest({TrialNumber{i}, spec.space, GiB(16), nullptr});
    sampler->Observe({i + 1,
                      {.number = TrialNumber{i},
                       .params = suggestion->params,
                       .state = TrialState::kCompleted,
                       .losses = {MixedLoss(suggestion->params)}}});
  }
  SearchSpace other = spec.space;
  other.parameters[0].domain = CategoricalDomain{{std::string("adam"), std::string("new")}};
  for (int64_t i = 30; i < 50; ++i) {
    const auto suggestion = sampler->Suggest({TrialNumber{i}, other, GiB(16), nullptr});
    ASSERT_TRUE(suggestion.ok());
    EXPECT_TRUE(ValidateParams(other, suggestion->params).ok());
  }
}

TEST(TpeSampler, SuggestMayRunConcurrentlyWithItself) {
  SimulatedStudy study(MixedStudy("tpe", 5), MixedLoss);
  for (int i = 0; i < 30; ++i) study.RunOne();
  std::vector<ParamMap> expected;
  for (int64_t i = 0; i < 8; ++i) expected.push_back(study.Suggest(100 + i).params);
  std::vector<ParamMap> found(expected.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back(
        [&, i] { found[i] = study.Suggest(100 + static_cast<int64_t>(i)).params; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace hpo::sampler
