// Trials that report epochs are compared by them: the steps of an epoch, which the batch sets, make
// no difference to any pruner.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sampler/api/history.h"
#include "sampler/api/pruner.h"
#include "sampler/factory/make_pruner.h"

namespace hpo::sampler {
namespace {

constexpr int kTrials = 40;
constexpr int kEpochs = 6;

// Far from the middle a trial is worse, and after some epochs no longer gets better.
double LossAfter(double epoch, int number) {
  const double distance = std::abs(number / 2 * 7 % 20 - 10) / 20.0;
  return 1.0 / epoch + 0.6 * distance * epoch;
}

class EpochStudy {
 public:
  explicit EpochStudy(const PrunerSpec& pruner) {
    spec_.name = "study";
    spec_.objectives = {{"loss", Direction::kMinimize}};
    spec_.pruner = pruner;
    pruner_ = MakePruner(spec_);
  }

  // After how many epochs the trial ended. It reports `reports_of_an_epoch` times in each.
  double Run(int number, int steps_of_an_epoch, int reports_of_an_epoch = 1) {
    Trial trial{.id = {"study", TrialNumber{number}}, .state = TrialState::kRunning};
    history_.Apply({++sequence_, ToHistory(trial, {}, spec_.objectives)});
    const int64_t every = steps_of_an_epoch / reports_of_an_epoch;
    std::vector<Measurement> measured;
    bool stopped = false;
    while (!stopped && std::ssize(measured) < kEpochs * reports_of_an_epoch) {
      const double epoch = (static_cast<double>(measured.size()) + 1.0) / reports_of_an_epoch;
      measured.push_back({.step = (std::ssize(measured) + 1) * every,
                          .epoch = epoch,
                          .metrics = {{"loss", LossAfter(epoch, number)}}});
      history_.ApplyReports(++sequence_, trial.id.number,
                            ReportsOf({measured.back()}, spec_.objectives.front()));
      stopped = pruner_->Decide(history_, trial.id.number).has_value();
    }
    EXPECT_EQ(ToHistory(trial, measured, spec_.objectives), history_.trials().at(trial.id.number))
        << "a rebuilt history is the folded one";
    const Measurement& last = measured.back();
    trial.outcome = stopped
                        ? TrialOutcome(StoppedByPruner{.step = last.step, .metrics = last.metrics})
                        : TrialOutcome(Completed{.metrics = last.metrics});
    trial.state = StateOf(*trial.outcome);
    history_.Apply({++sequence_, ToHistory(trial, measured, spec_.objectives)});
    EXPECT_EQ(history_.trials().at(trial.id.number).intermediate.size(), measured.size());
    return stopped ? last.epoch : kEpochs + 1;
  }

 private:
  StudySpec spec_;
  std::unique_ptr<Pruner> pruner_;
  History history_;
  int64_t sequence_ = 0;
};

class ByEpoch : public ::testing::TestWithParam<PrunerSpec> {};

TEST_P(ByEpoch, TheStepsOfAnEpochMakeNoDifference) {
  EpochStudy two_batches(GetParam());
  EpochStudy one_batch(GetParam());
  int num_stopped = 0;
  for (int number = 0; number < kTrials; ++number) {
    const double ended = two_batches.Run(number, number % 2 == number / 2 % 2 ? 40 : 5);
    EXPECT_EQ(ended, one_batch.Run(number, 40)) << number;
    num_stopped += ended <= kEpochs ? 1 : 0;
    if (LossAfter(kEpochs, number) == 1.0 / kEpochs) {
      EXPECT_GT(ended, kEpochs) << "the best";
    }
  }
  EXPECT_GT(num_stopped, 0);
}

TEST_P(ByEpoch, ReportsWithinAnEpochMakeNoDifference) {
  if (GetParam().type == "threshold") GTEST_SKIP() << "compares with no other trial";
  EpochStudy two_batches(GetParam());
  EpochStudy one_batch(GetParam());
  for (int number = 0; number < kTrials; ++number) {
    const int steps = number % 2 == number / 2 % 2 ? 5 : 40;
    EXPECT_EQ(two_batches.Run(number, steps, steps), one_batch.Run(number, 5, 5)) << number;
  }
}

TEST_P(ByEpoch, TrialsThatReportStepsAloneAreNotCompared) {
  const std::string& type = GetParam().type;
  if (type == "threshold" || type == "patient") GTEST_SKIP() << "compares with no other trial";
  History history;
  for (int number = 0; number < kTrials; ++number) {
    history.Apply({number,
                   {.number = TrialNumber{number},
                    .state = TrialState::kCompleted,
                    .losses = {0.0},
                    .intermediate = {{1, 0.0}, {kEpoch, 0.0}, {4 * kEpoch, 0.0}}}});
  }
  HistoryTrial asks{.number = TrialNumber{1000}, .by_epoch = true};
  for (int epoch = 1; epoch <= 4; ++epoch) asks.intermediate.Add(epoch * kEpoch, 100.0);
  history.Apply({kTrials, asks});
  StudySpec spec{.name = "study", .objectives = {{"loss", Direction::kMinimize}}};
  spec.pruner = GetParam();
  EXPECT_FALSE(MakePruner(spec)->Decide(history, asks.number).has_value());
}

INSTANTIATE_TEST_SUITE_P(
    Pruners, ByEpoch,
    ::testing::Values(PrunerSpec{.type = "asha"}, PrunerSpec{.type = "hyperband"},
                      PrunerSpec{.type = "median"}, PrunerSpec{.type = "percentile"},
                      PrunerSpec{.type = "predictive"}, PrunerSpec{.type = "wilcoxon"},
                      PrunerSpec{.type = "patient", .patience = 1},
                      PrunerSpec{.type = "threshold", .warmup_steps = 2, .upper = 1.2}),
    [](const auto& pruner) { return pruner.param.type; });

TEST(EpochsOfATrial, CountWhateverTheOrderOfItsReports) {
  const std::vector<Objective> objectives = {{"loss", Direction::kMinimize}};
  const Trial trial{.state = TrialState::kRunning};
  const Measurement without{.step = 5, .metrics = {{"loss", 3.0}}};
  const Measurement half{.step = 10, .epoch = 0.5, .metrics = {{"loss", 2.0}}};
  const Measurement later{.step = 15, .metrics = {{"loss", 1.0}}};
  const HistoryTrial seen = ToHistory(trial, {without, half, later}, objectives);
  EXPECT_TRUE(seen.by_epoch);
  EXPECT_EQ(seen.intermediate, (Curve{{0, 3.0}, {kEpoch / 2, 2.0}}));
  std::vector<Measurement> measured = {half, later, without};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(seen, ToHistory(trial, measured, objectives)) << i;
    std::rotate(measured.begin(), measured.begin() + 1, measured.end());
  }
}

// A row does not tell an epoch of 0 from none.
TEST(EpochsOfATrial, MayBeNumberedFromZero) {
  const std::vector<Objective> objectives = {{"loss", Direction::kMinimize}};
  std::vector<Measurement> measured;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const double loss : {5.0, 4.0}) {
      measured.push_back({.step = std::ssize(measured),
                          .epoch = static_cast<double>(epoch),
                          .metrics = {{"loss", loss - epoch}}});
    }
  }
  const HistoryTrial seen = ToHistory({.state = TrialState::kRunning}, measured, objectives);
  EXPECT_EQ(seen.intermediate, (Curve{{0, 4.0}, {kEpoch, 3.0}, {2 * kEpoch, 2.0}}));
}

}  // namespace
}  // namespace hpo::sampler
