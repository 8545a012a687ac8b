// The pruners that look at one trial, or at one other: threshold, patient, wilcoxon; and
// MakePruner.
#include "sampler/api/pruner.h"

#include "gtest/gtest.h"
#include "sampler/factory/make_pruner.h"
#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

constexpr TrialNumber kAsking{1000};

using Values = std::map<int64_t, double>;

Values FromStepOne(const std::vector<double>& values) {
  Values reports;
  for (const double value : values)
    reports.emplace(static_cast<int64_t>(reports.size()) + 1, value);
  return reports;
}

History WithAsking(History history, Values values) {
  history.Apply({1000, {.number = kAsking, .intermediate = std::move(values)}});
  return history;
}

std::unique_ptr<Pruner> Make(const PrunerSpec& spec, Direction direction = Direction::kMinimize) {
  StudySpec study;
  study.objectives = {{"value", direction}};
  study.pruner = spec;
  return MakePruner(study);
}

TEST(MakePruner, TakesTheStudysTypeAndNeverStopsWithSeveralObjectives) {
  History history;
  history.Apply({1,
                 {.number = TrialNumber{0},
                  .state = TrialState::kCompleted,
                  .losses = {0.0},
                  .intermediate = {{1, 0.0}}}});
  history.Apply({2, {.number = TrialNumber{1}, .intermediate = {{1, 9.0}}}});
  StudySpec study;
  study.objectives = {{"loss", Direction::kMinimize}};
  study.pruner = {.type = "median", .startup_trials = 1};
  EXPECT_TRUE(MakePruner(study)->Decide(history, TrialNumber{1}).has_value());
  study.pruner.type = "none";
  EXPECT_FALSE(MakePruner(study)->Decide(history, TrialNumber{1}).has_value());
  study.pruner.type = "median";
  study.objectives.push_back({"accuracy", Direction::kMaximize});
  EXPECT_FALSE(MakePruner(study)->Decide(history, TrialNumber{1}).has_value());
}

// However good their values: the search is not for them.
TEST(MakePruner, TrialsThatViolateAConstraintAreNoneToCompareWith) {
  for (const char* type : {"median", "asha", "wilcoxon"}) {
    SCOPED_TRACE(type);
    HistoryTrial good{.number = TrialNumber{0},
                      .state = TrialState::kCompleted,
                      .losses = {0.0},
                      .intermediate = FromStepOne(std::vector<double>(16, 0.0))};
    const Values poor = FromStepOne(std::vector<double>(16, 9.0));
    const auto pruner = Make({.type = type, .startup_trials = 1, .min_resource = 1});
    History history;
    history.Apply({1, good});
    EXPECT_TRUE(pruner->Decide(WithAsking(history, poor), kAsking).has_value());
    good.violation = 0.5;
    history.Apply({2, good});
    EXPECT_FALSE(pruner->Decide(WithAsking(history, poor), kAsking).has_value());
  }
}

TEST(MakePruner, EveryTypeAnswersForTrialsThatSaidNothing) {
  for (const char* type : {"predictive", "median", "percentile", "threshold", "patient", "asha",
                           "hyperband", "wilcoxon", "none"}) {
    SCOPED_TRACE(type);
    const auto pruner = Make({.type = type, .lower = 0.0});
    EXPECT_FALSE(pruner->Decide({}, TrialNumber{7}).has_value());
    EXPECT_FALSE(pruner->Decide(WithAsking({}, {}), kAsking).has_value());
  }
}

TEST(ThresholdPruner, StopsOutsideItsLimits) {
  struct Case {
    std::optional<double> lower, upper;
    double value;
    const char* why;  // nullptr: goes on
  };
  const Case cases[] = {
      {std::nullopt, 1.0, 1.0, nullptr},
      {std::nullopt, 1.0, 1.5, "1.5 at step 1 is above the limit 1"},
      {std::nullopt, 1.0, kUnbounded, "inf at step 1 is above the limit 1"},
      {0.5, std::nullopt, 0.5, nullptr},
      {0.5, std::nullopt, 0.25, "0.25 at step 1 is below the limit 0.5"},
      {0.5, 1.0, 0.75, nullptr},
      {0.5, 1.0, kNoNumber, "no finite value at step 1"},
  };
  for (const Direction direction : {Direction::kMinimize, Direction::kMaximize}) {
    const double sign = direction == Direction::kMaximize ? -1.0 : 1.0;
    for (const Case& test : cases) {
      SCOPED_TRACE(testing::Message() << Name(direction) << " " << test.value);
      const auto pruner =
          Make({.type = "threshold", .lower = test.lower, .upper = test.upper}, direction);
      const auto stop = pruner->Decide(WithAsking({}, {{1, sign * test.value}}), kAsking);
      ASSERT_EQ(stop.has_value(), test.why != nullptr);
      if (stop.has_value()) {
        EXPECT_EQ(stop->why, test.why);
      }
    }
  }
}

TEST(ThresholdPruner, LooksAtTheLastValueOfACheckPoint) {
  const auto pruner =
      Make({.type = "threshold", .warmup_steps = 2, .interval_steps = 2, .upper = 1.0});
  const std::pair<Values, bool> cases[] = {
      {{{1, 9.0}}, false},                    // warming up
      {{{1, 0.0}, {2, 9.0}}, true},           // first at or after 2
      {{{2, 0.0}, {3, 9.0}}, false},          // the interval's second
      {{{2, 9.0}, {4, 0.0}}, false},          // only the last counts
      {{{2, 0.0}, {3, 0.0}, {4, 9.0}}, true}  // the next check point
  };
  for (const auto& [values, stopped] : cases) {
    EXPECT_EQ(pruner->Decide(WithAsking({}, values), kAsking).has_value(), stopped);
  }
}

TEST(PatientPruner, StopsAfterPatienceWithoutProgress) {
  struct Case {
    int64_t patience;
    double min_delta;
    std::vector<double> values;
    bool stopped;
  };
  const Case cases[] = {
      {0, 0.0, {1.0, 1.0}, false},
      {0, 0.0, {1.0, 1.1}, true},
      {0, 0.2, {1.0, 1.1}, false},
      {0, 0.2, {1.0, 1.3}, true},
      {1, 0.0, {1.0, 2.0}, false},
      {1, 0.0, {1.0, 2.0, 2.0}, true},
      {1, 0.0, {1.0, 2.0, 0.5}, false},
      {1, 0.0, {1.0, 0.5, 2.0, 2.0}, true},
      {1, 0.0, {kNoNumber, 1.0, 1.0}, false},
      {1, 0.0, {1.0, kNoNumber, kNoNumber}, false},
      {1, 0.0, {1.0, kNoNumber, 2.0}, true},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(testing::PrintToString(test.values));
    const auto pruner =
        Make({.type = "patient", .patience = test.patience, .min_delta = test.min_delta});
    EXPECT_EQ(pruner->Decide(WithAsking({}, FromStepOne(test.values)), kAsking).has_value(),
              test.stopped);
  }
}

TEST(PatientPruner, AsksTheOneItWrapsAndSaysBoth) {
  PrunerSpec spec{.type = "patient", .upper = 2.5, .patience = 1, .wrapped = "threshold"};
  const auto pruner = Make(spec);
  EXPECT_FALSE(pruner->Decide(WithAsking({}, FromStepOne({1.0, 2.0, 2.0})), kAsking).has_value());
  EXPECT_FALSE(pruner->Decide(WithAsking({}, FromStepOne({1.0, 3.0})), kAsking).has_value());
  const auto stop = pruner->Decide(WithAsking({}, FromStepOne({1.0, 2.0, 3.0})), kAsking);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->pruner, "patient");
  EXPECT_EQ(stop->step, 3);
  EXPECT_EQ(stop->why,
            "best 2 of the last 2 reports up to step 3; before them 1; threshold: 3 at step 3 is "
            "above the limit 2.5");
}

// A best trial with `best` as its reports and its mean as its objective, and a worse one.
History WithBest(const std::vector<double>& best, double loss = 0.0) {
  History history;
  history.Apply({1,
                 {.number = TrialNumber{0},
                  .state = TrialState::kCompleted,
                  .losses = {loss + 1.0},
                  .intermediate = FromStepOne({9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0})}});
  history.Apply({2,
                 {.number = TrialNumber{1},
                  .state = TrialState::kCompleted,
                  .losses = {loss},
                  .intermediate = FromStepOne(best)}});
  return history;
}

TEST(WilcoxonPruner, StopsWhatIsWorseBeyondChance) {
  const std::vector<double> best = {1.0, 2.0, 3.0, 4.0, 5.0};
  struct Case {
    std::vector<double> values;
    double p_threshold;
    int64_t startup_steps;
    bool stopped;
  };
  const Case cases[] = {
      {{3.0, 4.0}, 0.26, 2, true},                  // p = 1/4: both worse
      {{3.0, 4.0}, 0.25, 2, false},                 // not below
      {{3.0, 4.0}, 0.26, 3, false},                 // too few pairs
      {{2.0}, 1.0, 0, false},                       // never with one
      {{2.0, 4.0, 6.0}, 0.2, 2, true},              // p = 1/8
      {{2.0, 4.0, 6.0}, 0.1, 2, false},             //
      {{2.0, 4.0, 6.0, 8.0}, 0.1, 2, true},         // p = 1/16
      {{0.5, 1.0, 2.0, 3.5}, 1.0, 2, false},        // better
      {{2.0, kNoNumber, 6.0, 8.0}, 0.1, 2, false},  // no number
      {{2.0, kUnbounded, 6.0}, 0.2, 2, false},
      {{1.5, 2.1, 3.1}, 0.2, 2, false},  // worse by rank, but its mean is better so far
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(testing::PrintToString(test.values));
    const auto pruner = Make(
        {.type = "wilcoxon", .p_threshold = test.p_threshold, .startup_steps = test.startup_steps});
    EXPECT_EQ(
        pruner->Decide(WithAsking(WithBest(best), FromStepOne(test.values)), kAsking).has_value(),
        test.stopped);
  }
}

TEST(WilcoxonPruner, NeedsABestTrialWithNumbers) {
  const auto pruner = Make({.type = "wilcoxon", .p_threshold = 0.3});
  const Values worse = FromStepOne({7.0, 8.0});
  EXPECT_FALSE(pruner->Decide(WithAsking({}, worse), kAsking).has_value());
  EXPECT_FALSE(pruner->Decide(WithAsking(WithBest({}), worse), kAsking).has_value());
  EXPECT_FALSE(
      pruner->Decide(WithAsking(WithBest({1.0, 2.0, kNoNumber}), worse), kAsking).has_value());
  const auto stop = pruner->Decide(WithAsking(WithBest({1.0, 2.0}), worse), kAsking);
  ASSERT_TRUE(stop.has_value());
  EXPECT_EQ(stop->why,
            "mean 7.5, worse than trial 1, the best, with 1.5: p = 0.25 on 2 common steps, below "
            "0.3");
}

}  // namespace
}  // namespace hpo::sampler
