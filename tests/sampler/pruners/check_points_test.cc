#include "sampler/pruners/check_points.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sampler/api/pruner.h"
#include "sampler/factory/make_pruner.h"

namespace hpo::sampler {
namespace {

int64_t Epoch(double epoch) { return std::llround(epoch * static_cast<double>(kEpoch)); }

HistoryTrial WithEpochs(const std::vector<double>& epochs,
                        TrialState state = TrialState::kCompleted) {
  HistoryTrial trial{.state = state, .by_epoch = true};
  for (const double epoch : epochs) trial.intermediate.Add(Epoch(epoch), 1.0 / epoch);
  return trial;
}

History AllOf(std::vector<HistoryTrial> trials) {
  History history;
  for (HistoryTrial& trial : trials) {
    trial.number = TrialNumber{history.sequence()};
    history.Apply({history.sequence() + 1, trial});
  }
  return history;
}

std::vector<double> Multiples(double distance, double until) {
  std::vector<double> epochs;
  for (int i = 1; distance * i < until + 1e-9; ++i) epochs.push_back(distance * i);
  return epochs;
}

TEST(CheckPoints, AreAsFarApartAsTheReportsOfWhoeverReportsLeast) {
  const struct {
    const char* name;
    std::vector<HistoryTrial> trials;
    double apart;
  } cases[] = {
      {"every one", {WithEpochs(Multiples(1.0, 6.0))}, 1.0},
      {"the rarest", {WithEpochs(Multiples(0.025, 2.0)), WithEpochs(Multiples(0.2, 2.0))}, 0.2},
      {"also one that runs",
       {WithEpochs(Multiples(0.025, 2.0)), WithEpochs({0.5}, TrialState::kRunning)},
       0.5},
      {"its widest gap", {WithEpochs({0.5, 2.0, 2.5, 3.0})}, 1.5},
      {"its first report", {WithEpochs(Multiples(0.5, 3.0)), WithEpochs({2.0, 3.0})}, 2.0},
      {"not one that reports at its end alone",
       {WithEpochs(Multiples(0.5, 6.0)), WithEpochs({6.0})},
       0.5},
      {"nobody reports from the start", {WithEpochs({5.0, 6.0, 7.0}), WithEpochs({5.0})}, 1.0},
      {"unless all do", {WithEpochs({6.0})}, 6.0},
      {"a hundredth of the longest", {WithEpochs(Multiples(0.001, 1.0))}, 0.01},
      {"whole epochs stay so", {WithEpochs(Multiples(1.0, 250.0))}, 3.0},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    EXPECT_EQ(CheckPoints(AllOf(test.trials)).apart(), Epoch(test.apart));
  }
}

TEST(CheckPoints, RoundedEpochsReachThem) {
  HistoryTrial trial{.state = TrialState::kRunning, .by_epoch = true};
  for (int step = 1; step <= 70; ++step) {
    trial.intermediate.Add(Epoch(std::round(step / 7.0 * 1e4) / 1e4), 1.0);
    const CheckPoints points(AllOf({trial}));
    EXPECT_EQ(points.LastOf(trial), step * points.apart()) << step;
  }
}

TEST(CheckPoints, ValuesAreThoseOfTheEpoch) {
  const HistoryTrial fine = WithEpochs({0.4, 0.6, 1.0, 1.2}, TrialState::kRunning);
  const CheckPoints points(AllOf({WithEpochs(Multiples(0.5, 3.0)), fine}));
  EXPECT_EQ(points.LastOf(fine), Epoch(1.0));
  EXPECT_EQ(points.ValueAt(fine, Epoch(1.0)), 1.0) << "what was reported there";
  EXPECT_NEAR(*points.ValueAt(fine, Epoch(0.5)), 2.0, 1e-12) << "between two reports";
  EXPECT_EQ(points.ValueAt(fine, Epoch(1.5)), std::nullopt) << "it has not gone so far";
  EXPECT_EQ(points.ValueAt(WithEpochs(Multiples(0.5, 1.0)), Epoch(1.5)), 1.0)
      << "it has ended before";
  EXPECT_EQ(points.ValueAt(WithEpochs({2.0}), Epoch(1.5)), std::nullopt) << "nothing before";
  EXPECT_EQ(points.CurveOf(fine).size(), 2u);
  EXPECT_EQ(points.EndOf(fine, Epoch(0.5))->first, Epoch(0.6));
}

TEST(CheckPoints, AreAtOrAfterAnEpoch) {
  const CheckPoints points(AllOf({WithEpochs(Multiples(0.5, 3.0))}));
  EXPECT_EQ(points.AtOrAfter(0), 0);
  EXPECT_EQ(points.AtOrAfter(Epoch(0.03)), Epoch(0.5));
  EXPECT_EQ(points.AtOrAfter(Epoch(0.5)), Epoch(0.5));
  EXPECT_EQ(points.AtOrAfter(Epoch(0.5) + 1), Epoch(0.5)) << "rounded";
  EXPECT_EQ(points.AtOrAfter(Epoch(200.0)), Epoch(200.0));
  EXPECT_GT(points.AtOrAfter(std::numeric_limits<int64_t>::max()), Epoch(200.0));
}

// A worker sends what has come since its last call, so that a check point may be reached by a
// report that is not the last.
TEST(CheckPoints, AreJudgedOfAllReportsThatCameWithOneCall) {
  History history = AllOf(std::vector<HistoryTrial>(6, WithEpochs(Multiples(1.0, 3.0))));
  const TrialNumber asking{10};
  history.Apply({20, {.number = asking, .state = TrialState::kRunning}});
  const auto report = [&](std::vector<double> epochs) {
    Reports reports;
    for (const double epoch : epochs) reports.push_back({.epoch = Epoch(epoch), .loss = 9.0});
    history.ApplyReports(21, asking, reports);
  };
  StudySpec study{.name = "study", .objectives = {{"loss", Direction::kMinimize}}};
  for (const char* type : {"median", "asha"}) {
    SCOPED_TRACE(type);
    study.pruner = {.type = type, .startup_trials = 1, .min_resource = 1};
    const auto decide = [&] { return MakePruner(study)->Decide(history, asking); };
    history.Apply({22, {.number = asking, .state = TrialState::kRunning}});
    report({0.2, 0.4, 0.6});
    EXPECT_FALSE(decide().has_value());
    report({0.8, 1.0, 1.2, 1.4});
    EXPECT_TRUE(decide().has_value());
    report({1.6});
    EXPECT_FALSE(decide().has_value()) << "it was judged there";
  }
}

// At epoch 4.5, a check point, it has no value, which is not a bad one.
TEST(CheckPoints, BeforeItsFirstReportNothingIsJudged) {
  History history =
      AllOf({WithEpochs({5.0, 6.0, 7.0}), WithEpochs({5.0, 6.0, 7.0}), WithEpochs({5.5, 6.5})});
  const TrialNumber asking{10};
  history.Apply({20, {.number = asking, .state = TrialState::kRunning}});
  history.ApplyReports(21, asking, {{.epoch = Epoch(5.5), .loss = 0.1}});
  ASSERT_EQ(CheckPoints(history).apart(), Epoch(1.5));
  StudySpec study{.name = "study", .objectives = {{"loss", Direction::kMinimize}}};
  for (const char* type : {"median", "asha", "hyperband", "predictive"}) {
    study.pruner = {.type = type, .startup_trials = 1};
    EXPECT_FALSE(MakePruner(study)->Decide(history, asking).has_value()) << type;
  }
}

// The first report of a whole epoch is no match for the best of all of another trial's.
TEST(CheckPoints, AnEpochThatIsReportedWithinIsJudgedWhenItIsOver) {
  const std::vector<Objective> objectives = {{"loss", Direction::kMinimize}};
  const auto run = [&](TrialNumber number, TrialState state, double offset, int num_reports) {
    std::vector<Measurement> measured;
    for (int step = 0; step < num_reports; ++step) {
      measured.push_back({.step = step,
                          .epoch = static_cast<double>(step / 4),
                          .metrics = {{"loss", offset + 1.0 / (step + 1)}}});
    }
    HistoryTrial seen =
        ToHistory({.id = {"study", number}, .state = TrialState::kRunning}, measured, objectives);
    seen.state = state;
    return seen;
  };
  StudySpec study{.name = "study", .objectives = objectives};
  for (const char* type : {"median", "asha"}) {
    study.pruner = {.type = type, .startup_trials = 1, .reduction_factor = 2};
    for (const double offset : {-0.01, 0.01}) {
      History history;
      for (int i = 0; i < 6; ++i) {
        history.Apply({i, run(TrialNumber{i}, TrialState::kCompleted, 0.0, 16)});
      }
      for (int num_reports = 1; num_reports <= 9; ++num_reports) {
        SCOPED_TRACE(testing::Message() << type << " " << offset << " " << num_reports);
        history.Apply({10, run(TrialNumber{10}, TrialState::kRunning, offset, num_reports)});
        const bool stops = MakePruner(study)->Decide(history, TrialNumber{10}).has_value();
        EXPECT_EQ(stops, offset > 0.0 && num_reports == 9);
      }
    }
  }
}

TEST(WhyNeverStopped, SaysThatAStudyFileMeansSteps) {
  const HistoryTrial trial = WithEpochs(Multiples(0.5, 3.0));
  HistoryTrial by_step = trial;
  by_step.by_epoch = false;
  const PrunerSpec steps{.type = "median", .warmup_steps = 200};
  EXPECT_EQ(WhyNeverStopped(trial, steps),
            "pruner.warmup_steps: expected less than 3, the epochs of trial #0, got 200: of trials "
            "that report epochs it counts epochs, not steps, and no trial is ever stopped");
  EXPECT_NE(WhyNeverStopped(trial, {.type = "asha", .min_resource = 100}), "");
  EXPECT_NE(WhyNeverStopped(trial, {.type = "median", .warmup_steps = 3}), "");
  EXPECT_EQ(WhyNeverStopped(trial, {.type = "median", .warmup_steps = 2}), "");
  EXPECT_EQ(WhyNeverStopped(trial, {.type = "none", .warmup_steps = 200}), "");
  EXPECT_EQ(WhyNeverStopped(trial, {}), "");
  EXPECT_EQ(WhyNeverStopped(by_step, steps), "");
}

}  // namespace
}  // namespace hpo::sampler
