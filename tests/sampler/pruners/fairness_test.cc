// Studies of trials whose batch sets how often they report: of curves that are equal by epoch every
// batch is stopped as often, and what is truly worse is stopped all the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/random.h"
#include "gtest/gtest.h"
#include "sampler/api/history.h"
#include "sampler/api/pruner.h"
#include "sampler/factory/make_pruner.h"

namespace hpo::sampler {
namespace {

constexpr std::array<int, 6> kBatches = {8, 16, 32, 64, 128, 256};
constexpr int kLength = 4;

// What a trainer reports.
struct Reporting {
  const char* name;
  int every_steps = 0;     // 0: after each epoch
  bool from_zero = false;  // its epochs are numbered from 0
  int rows = 2048;         // of an epoch
};

struct SimulatedTrial {
  int number = 0;
  size_t batch = 0;
  double offset = 0.0;  // of its curve
  std::vector<Measurement> measurements;
  std::vector<double> at;  // when they come after its start; every batch is as fast
  size_t num_reported = 0;
  double started_at = 0.0;
  bool pruned = false;
};

double Normal(Rng& rng) {
  return std::sqrt(-2.0 * std::log(1.0 - rng.Uniform())) *
         std::cos(2.0 * std::numbers::pi * rng.Uniform());
}

SimulatedTrial DrawTrial(int number, const Reporting& reporting, Rng& rng) {
  SimulatedTrial trial{.number = number, .batch = rng.Below(kBatches.size())};
  trial.offset = 0.2 * rng.Uniform();
  const int batch = kBatches[trial.batch];
  const int steps = (reporting.rows + batch - 1) / batch;
  const int every = reporting.every_steps > 0 ? reporting.every_steps : steps;
  for (int step = every; step <= kLength * steps; step += every) {
    const double epoch = static_cast<double>(step) / steps;
    const double loss = 1.0 / epoch + trial.offset + 0.02 * Normal(rng);
    trial.measurements.push_back({.step = step,
                                  .epoch = reporting.from_zero ? epoch - 1.0 : epoch,
                                  .metrics = {{"loss", loss}}});
    trial.at.push_back(epoch);
  }
  return trial;
}

// A study's trials as they ended.
class FairStudy {
 public:
  FairStudy(const PrunerSpec& pruner, const Reporting& reporting, uint64_t seed)
      : reporting_(reporting), rng_(seed, 0) {
    spec_.name = absl::StrCat("study", seed);
    spec_.objectives = {{"loss", Direction::kMinimize}};
    spec_.pruner = pruner;
    pruner_ = MakePruner(spec_);
  }

  std::vector<SimulatedTrial> Run(int num_trials, size_t num_workers) {
    std::vector<SimulatedTrial> ended;
    std::vector<SimulatedTrial> running;
    double now = 0.0;
    int started = 0;
    while (started < num_trials || !running.empty()) {
      while (started < num_trials && running.size() < num_workers) {
        running.push_back(DrawTrial(started++, reporting_, rng_));
        running.back().started_at = now;
        Begin(running.back());
      }
      const auto next = std::min_element(running.begin(), running.end(), [](auto& a, auto& b) {
        return a.started_at + a.at[a.num_reported] < b.started_at + b.at[b.num_reported];
      });
      now = next->started_at + next->at[next->num_reported];
      if (!Report(*next)) continue;
      ended.push_back(std::move(*next));
      running.erase(next);
    }
    return ended;
  }

 private:
  void Begin(const SimulatedTrial& trial) {
    history_.Apply(
        {++sequence_, {.number = TrialNumber{trial.number}, .state = TrialState::kRunning}});
  }

  // Whether the trial has ended.
  bool Report(SimulatedTrial& trial) {
    const Measurement& measured = trial.measurements[trial.num_reported++];
    const TrialNumber number{trial.number};
    history_.ApplyReports(++sequence_, number, ReportsOf({measured}, spec_.objectives.front()));
    const bool last = trial.num_reported == trial.measurements.size();
    trial.pruned = !last && pruner_->Decide(history_, number).has_value();
    if (!last && !trial.pruned) return false;
    HistoryTrial seen = history_.trials().at(number);
    seen.state = trial.pruned ? TrialState::kPruned : TrialState::kCompleted;
    if (trial.pruned) seen.prune_reason = PruneReason::kPruner;
    if (!trial.pruned) seen.losses = {measured.metrics.at("loss")};
    history_.Apply({++sequence_, seen});
    return true;
  }

  Reporting reporting_;
  Rng rng_;
  StudySpec spec_;
  std::unique_ptr<Pruner> pruner_;
  History history_;
  int64_t sequence_ = 0;
};

// Of many studies.
struct Counts {
  std::array<double, kBatches.size()> trials{};
  std::array<double, kBatches.size()> pruned{};
  double better_half = 0.0, better_half_pruned = 0.0;
  double worse_half = 0.0, worse_half_pruned = 0.0;
  double share_run = 0.0;  // of all epochs

  void Add(const SimulatedTrial& trial) {
    trials[trial.batch] += 1.0;
    pruned[trial.batch] += trial.pruned ? 1.0 : 0.0;
    const bool better = trial.offset < 0.1;
    (better ? better_half : worse_half) += 1.0;
    (better ? better_half_pruned : worse_half_pruned) += trial.pruned ? 1.0 : 0.0;
    share_run += trial.at[trial.num_reported - 1] / trial.at.back();
  }

  double num_trials() const { return better_half + worse_half; }
  double num_pruned() const { return better_half_pruned + worse_half_pruned; }

  // Pearson's statistic of all batches being stopped as often; by chance alone that of a
  // chi-squared distribution with 5 degrees of freedom.
  double Unevenness() const {
    const double share = num_pruned() / num_trials();
    double sum = 0.0;
    for (size_t i = 0; i < kBatches.size(); ++i) {
      const double off = pruned[i] - share * trials[i];
      sum += off * off / (trials[i] * share * (1.0 - share));
    }
    return sum;
  }

  std::string Text() const {
    std::vector<std::string> shares;
    for (size_t i = 0; i < kBatches.size(); ++i) {
      shares.push_back(
          absl::StrCat(kBatches[i], ": ", std::lround(100.0 * pruned[i] / trials[i]), " %"));
    }
    return absl::StrCat("pruned by batch: ", absl::StrJoin(shares, ", "), "; unevenness ",
                        Unevenness(), "; of the better half ",
                        std::lround(100.0 * better_half_pruned / better_half), " %, of the worse ",
                        std::lround(100.0 * worse_half_pruned / worse_half), " %; epochs run ",
                        std::lround(100.0 * share_run / num_trials()), " %");
  }
};

Counts Simulate(const PrunerSpec& pruner, const Reporting& reporting, uint64_t first_seed,
                int num_studies) {
  Counts counts;
  for (int i = 0; i < num_studies; ++i) {
    FairStudy study(pruner, reporting, first_seed + static_cast<uint64_t>(i));
    for (const SimulatedTrial& trial : study.Run(60, i % 2 == 0 ? 1 : 4)) counts.Add(trial);
  }
  return counts;
}

class Fairness : public ::testing::TestWithParam<std::tuple<PrunerSpec, Reporting>> {
 protected:
  static Counts Run() {
    const auto& [pruner, reporting] = GetParam();
    return Simulate(pruner, reporting, 1, 20);
  }
};

TEST_P(Fairness, EveryBatchIsStoppedAsOften) {
  const Counts counts = Run();
  // Of chance alone once in 2000.
  EXPECT_LT(counts.Unevenness(), 22.1) << counts.Text();
}

class Power : public Fairness {};

TEST_P(Power, WhatIsWorseIsStopped) {
  const Counts counts = Run();
  EXPECT_LT(counts.Unevenness(), 22.1) << counts.Text();
  EXPECT_GT(counts.worse_half_pruned, 0.55 * counts.worse_half) << counts.Text();
  EXPECT_LT(counts.better_half_pruned / counts.better_half,
            counts.worse_half_pruned / counts.worse_half)
      << counts.Text();
}

constexpr Reporting kEachStep = {.name = "EachStep", .every_steps = 1};

std::string NameOfCase(const ::testing::TestParamInfo<std::tuple<PrunerSpec, Reporting>>& test) {
  return absl::StrCat(std::get<0>(test.param).type, "_", std::get<1>(test.param).name);
}

INSTANTIATE_TEST_SUITE_P(
    Comparing, Power,
    ::testing::Combine(
        ::testing::Values(PrunerSpec{.type = "asha"}, PrunerSpec{.type = "hyperband"},
                          PrunerSpec{.type = "median"}, PrunerSpec{.type = "percentile"},
                          PrunerSpec{.type = "predictive"}),
        ::testing::Values(
            kEachStep, Reporting{.name = "EachStepOfUnevenEpochs", .every_steps = 1, .rows = 1700},
            Reporting{.name = "EveryTenSteps", .every_steps = 10, .rows = 2560},
            Reporting{.name = "EachEpoch"},
            Reporting{.name = "EachEpochFromZero", .from_zero = true})),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(Others, Fairness,
                         ::testing::Combine(::testing::Values(PrunerSpec{.type = "wilcoxon"},
                                                              PrunerSpec{.type = "patient",
                                                                         .patience = 3}),
                                            ::testing::Values(kEachStep)),
                         NameOfCase);

}  // namespace
}  // namespace hpo::sampler
