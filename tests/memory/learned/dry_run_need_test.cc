#include "memory/learned/dry_run_need.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/memory/dry_run_programs.h"

namespace hpo::memory {
namespace {

constexpr Bytes kStatedMargin = MiB(300);

SearchSpace BatchSpace() {
  SearchSpace space;
  space.parameters = {WholeNumber("batch", 1, 64)};
  return space;
}

ParamMap Batch(int64_t rows) { return {{"batch", rows}}; }

DryRunFinding Found(int64_t rows, Bytes required) {
  return {.params = Batch(rows), .required = required, .margin = kStatedMargin};
}

DryRunNeed Learn(const std::vector<DryRunFinding>& findings,
                 const std::vector<NeedObservation>& seen = {}, Bytes spare = {}) {
  return DryRunNeed(BatchSpace(), {},
                    {.seen = seen, .findings = findings, .usable = GiB(8), .spare = spare});
}

TEST(DryRunNeed, NothingIsSureAtFirst) {
  const std::optional<LearnedFit> fit = Learn({}).Decide(Batch(1), GiB(8));
  ASSERT_TRUE(fit.has_value());
  EXPECT_TRUE(fit->fits);
  EXPECT_FALSE(fit->sure);
}

TEST(DryRunNeed, ADryRunDecidesForItsConfiguration) {
  struct Case {
    Bytes required;
    bool fits;
  };
  for (const Case& c : {Case{GiB(4), true}, Case{GiB(9), false},
                        Case{GiB(8) - MiB(200), false}}) {  // within its margin
    const std::optional<LearnedFit> fit = Learn({Found(3, c.required)}).Decide(Batch(3), GiB(8));
    ASSERT_TRUE(fit.has_value());
    EXPECT_TRUE(fit->sure);
    EXPECT_EQ(fit->fits, c.fits) << c.required.count;
  }
}

TEST(DryRunNeed, WhatRanSaysByHowMuchDryRunsAreOff) {
  const std::vector<DryRunFinding> findings = {Found(1, GiB(4)), Found(2, GiB(8) - MiB(200))};
  const NeedObservation used{.params = Batch(1), .bytes = GiB(4) + MiB(10)};
  EXPECT_TRUE(Learn(findings, {used}).Decide(Batch(2), GiB(8))->fits);
  const NeedObservation more{.params = Batch(1), .bytes = GiB(4) + MiB(290)};
  EXPECT_FALSE(Learn(findings, {more}).Decide(Batch(2), GiB(8))->fits);
}

TEST(DryRunNeed, AnErrorRaisesTheNeedsOfAllDryRuns) {
  const std::vector<DryRunFinding> findings = {Found(1, GiB(8) - MiB(200)),
                                               Found(2, GiB(8) - MiB(220))};
  const NeedObservation used{.params = Batch(2), .bytes = GiB(8) - MiB(220)};
  const NeedObservation oom{.params = Batch(1), .bytes = GiB(8), .censored = true};
  EXPECT_TRUE(Learn(findings, {used}).Decide(Batch(2), GiB(8))->fits);
  EXPECT_FALSE(Learn(findings, {used, oom}).Decide(Batch(2), GiB(8))->fits);
}

TEST(DryRunNeed, MemoryThatIsSpareIsForWhatWasDryRun) {
  const std::vector<DryRunFinding> findings = {Found(1, GiB(8) - MiB(200))};
  EXPECT_TRUE(Learn(findings, {}, /*spare=*/MiB(256)).Decide(Batch(1), GiB(8))->fits);
}

TEST(DryRunNeed, OneInVainIsForOthersToDecide) {
  std::vector<DryRunFinding> findings = {Found(3, GiB(4))};
  findings.front().measured = false;
  EXPECT_FALSE(Learn(findings).Decide(Batch(3), GiB(8)).has_value());
}

TEST(DryRunNeed, FromEnoughDryRunsOnMostIsSure) {
  std::vector<DryRunFinding> findings;
  for (int64_t rows = 2; rows <= 32; rows += 2) {
    findings.push_back(Found(rows, MiB(500) + MiB(400) * rows));
  }
  const DryRunNeed need = Learn(findings);
  for (const auto& [rows, fits] : {std::pair(1, true), std::pair(9, true), std::pair(40, false)}) {
    const std::optional<LearnedFit> fit = need.Decide(Batch(rows), GiB(8));
    ASSERT_TRUE(fit.has_value());
    EXPECT_TRUE(fit->sure) << rows;
    EXPECT_EQ(fit->fits, fits) << rows;
  }
  EXPECT_FALSE(need.Decide(Batch(19), GiB(8))->sure) << "too near to the limit";
}

DryRunFigures RunAll(const std::vector<DryRunProgram>& programs, uint64_t seeds) {
  DryRunFigures figures;
  for (const DryRunProgram& program : programs) {
    for (uint64_t seed = 0; seed < seeds; ++seed) figures += DryRunStudy(program, seed).Run();
  }
  return figures;
}

// The goals of the project (figure study_oom_with_preflight): at most one error in 180 trials, 3 %
// of the feasible configurations refused, a dry run for every second trial.
void ExpectGoals(const DryRunFigures& figures) {
  EXPECT_GT(figures.trials, 0);
  EXPECT_LE(180 * figures.ooms, figures.trials);
  EXPECT_LE(2 * figures.dry_runs, figures.trials);
  EXPECT_LE(figures.refused_feasible, (figures.trials + figures.refused_feasible) * 3 / 100);
}

TEST(DryRunNeedStatistical, MeetsTheGoalsOnThePrograms) {
  ExpectGoals(RunAll(TuningPrograms(), 1));
  ExpectGoals(RunAll(CheckedPrograms(), 2));
}

}  // namespace
}  // namespace hpo::memory
