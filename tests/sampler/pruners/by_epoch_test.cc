// Trials that report epochs are compared by them: the steps of an epoch, which the batch sets, make
// no difference to any pruner.
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "sampler/history.h"
#include "sampler/pruner.h"

namespace hpo {
namespace {

constexpr int kTrials = 40;
constexpr int kEpochs = 6;

// Far from the middle a trial is worse, and after some epochs no longer gets better.
double LossAfter(int epoch, int number) {
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

  // After how many epochs the trial ended.
  int Run(int number, int steps_of_an_epoch) {
    Trial trial{.id = {"study", TrialNumber{number}}, .state = TrialState::kRunning};
    history_.Apply({++sequence_, ToHistory(trial, {}, spec_.objectives)});
    std::vector<Measurement> measured;
    bool stopped = false;
    while (!stopped && measured.size() < kEpochs) {
      const int epoch = static_cast<int>(measured.size()) + 1;
      measured.push_back({.step = int64_t{epoch} * steps_of_an_epoch,
                          .epoch = static_cast<double>(epoch),
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
    return stopped ? static_cast<int>(measured.size()) : kEpochs + 1;
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
    const int ended = two_batches.Run(number, number % 2 == number / 2 % 2 ? 40 : 5);
    EXPECT_EQ(ended, one_batch.Run(number, 40)) << number;
    num_stopped += ended <= kEpochs ? 1 : 0;
    if (LossAfter(kEpochs, number) == 1.0 / kEpochs) {
      EXPECT_GT(ended, kEpochs) << "the best";
    }
  }
  EXPECT_GT(num_stopped, 0);
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
  const HistoryTrial seen = ToHistory(trial, {without, half}, objectives);
  EXPECT_TRUE(seen.by_epoch);
  EXPECT_EQ(seen.intermediate, (Curve{{kEpoch / 2, 2.0}}));
  EXPECT_EQ(seen, ToHistory(trial, {half, without}, objectives));
}

}  // namespace
}  // namespace hpo
