#include "sampler/factory/auto_sampler.h"

#include <cmath>

#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "sampler/numeric/portable_math.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

// Trials that have ended, with these losses by number.
History Ended(const std::vector<double>& losses) {
  History history;
  for (size_t i = 0; i < losses.size(); ++i) {
    history.Apply({static_cast<int64_t>(i) + 1,
                   {.number = TrialNumber{static_cast<int64_t>(i)},
                    .state = TrialState::kCompleted,
                    .losses = {losses[i]}}});
  }
  return history;
}

std::vector<double> Falling(size_t count) {
  std::vector<double> losses;
  for (size_t i = 0; i < count; ++i) losses.push_back(-static_cast<double>(i));
  return losses;
}

AutoChoice Choose(const std::vector<double>& losses, AutoTraits study = {}) {
  return ChooseSampler(Ended(losses), study);
}

TEST(ChooseSampler, TheProcessWhileTrialsAreFew) {
  EXPECT_EQ(Choose({}), (AutoChoice{Proposer::kProcess, "0 trials"}));
  EXPECT_EQ(Choose({1.0}), (AutoChoice{Proposer::kProcess, "1 trial"}));
  EXPECT_EQ(Choose(Falling(500)), (AutoChoice{Proposer::kProcess, "500 trials"}));
}

TEST(ChooseSampler, ManyTrialsAreForCmaEsWhereItSuits) {
  EXPECT_EQ(Choose(Falling(501)), (AutoChoice{Proposer::kTpe, "501 trials"}));
  const AutoTraits numbers{.suits_cma_es = true};
  EXPECT_EQ(Choose(Falling(500), numbers).proposer, Proposer::kProcess);
  EXPECT_EQ(Choose(Falling(501), numbers), (AutoChoice{Proposer::kCmaEs, "501 trials"}));
  EXPECT_EQ(Choose(Falling(501), {.num_objectives = 2, .suits_cma_es = true}).proposer,
            Proposer::kTpe);
}

TEST(ChooseSampler, ABudgetOfManyTrialsBringsCmaEsForward) {
  const AutoTraits many{.suits_cma_es = true, .budget_trials = 750};
  EXPECT_EQ(Choose(Falling(200), many), (AutoChoice{Proposer::kProcess, "200 trials"}));
  EXPECT_EQ(Choose(Falling(201), many),
            (AutoChoice{Proposer::kCmaEs, "201 trials of a budget of 750"}));
  EXPECT_EQ(Choose(Falling(501), many), (AutoChoice{Proposer::kCmaEs, "501 trials"}));
  EXPECT_EQ(Choose(Falling(201), {.suits_cma_es = true, .budget_trials = 749}).proposer,
            Proposer::kProcess);
  EXPECT_EQ(Choose(Falling(201), {.suits_cma_es = true}).proposer, Proposer::kProcess);
  EXPECT_EQ(Choose(Falling(201), {.budget_trials = 750}).proposer, Proposer::kProcess);
}

TEST(ChooseSampler, ManyRunningBesideLeaveTheProcessItsTime) {
  const AutoTraits many{.suits_cma_es = true, .budget_trials = 750};
  History history = Ended(Falling(201));
  for (int64_t i = 0; i < 16; ++i) {
    history.Apply({300 + i, {TrialNumber{201 + i}, {}, TrialState::kRunning}});
  }
  EXPECT_EQ(ChooseSampler(history, many).proposer, Proposer::kCmaEs);
  history.Apply({400, {TrialNumber{217}, {}, TrialState::kRunning}});
  EXPECT_EQ(ChooseSampler(history, many).proposer, Proposer::kProcess);
}

TEST(ChooseSampler, SeveralObjectivesAreForTpe) {
  EXPECT_EQ(Choose({1.0}, {.num_objectives = 2}), (AutoChoice{Proposer::kTpe, "2 objectives"}));
}

// Standing still is no reason: docs/adr/007.
TEST(ChooseSampler, TheProcessWhereNothingGetsBetter) {
  for (const double loss : {1.0, kUnbounded, kNoNumber}) {
    EXPECT_EQ(Choose(std::vector<double>(100, loss)),
              (AutoChoice{Proposer::kProcess, "100 trials"}));
  }
}

TEST(ChooseSampler, TpeWhereManyFail) {
  History history = Ended(Falling(10));
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(ChooseSampler(history, {}).proposer, Proposer::kProcess) << i << " of 10 and those";
    history.Apply({20 + i, {TrialNumber{10 + i}, {}, TrialState::kFailed}});
  }
  EXPECT_EQ(ChooseSampler(history, {}), (AutoChoice{Proposer::kTpe, "4 of 14 trials failed"}));
  for (int64_t i = 4; i < 9; ++i) {
    history.Apply({20 + i,
                   {.number = TrialNumber{10 + i},
                    .state = TrialState::kCompleted,
                    .losses = {-100.0 - static_cast<double>(i)}}});
  }
  EXPECT_EQ(ChooseSampler(history, {}), (AutoChoice{Proposer::kProcess, "15 trials"}));
}

// Running and queued trials have not finished; pruned ones have.
TEST(ChooseSampler, CountsWhatHasFinished) {
  for (const TrialState state :
       {TrialState::kRunning, TrialState::kQueued, TrialState::kCancelled, TrialState::kPruned}) {
    History history;
    for (int64_t i = 0; i < 501; ++i) history.Apply({i + 1, {TrialNumber{i}, {}, state}});
    const bool pruned = state == TrialState::kPruned;
    EXPECT_EQ(ChooseSampler(history, {}).proposer == Proposer::kTpe, pruned);
  }
}

StudySpec BowlStudy() {
  StudySpec study;
  study.sampler.seed = 4;
  study.objectives = {Objective{}};
  study.space.parameters = {MakeParameter("x", FloatDomain{}), MakeParameter("y", FloatDomain{})};
  return study;
}

std::optional<double> Bowl(const ParamMap& params) {
  return std::pow(*FindDouble(params, "x") - 0.3, 2) + std::pow(*FindDouble(params, "y") - 0.8, 2);
}

TEST(AutoSampler, IsTheDefaultAndSaysWhatProposed) {
  SimulatedStudy study(BowlStudy(), Bowl);
  EXPECT_EQ(study.Suggest(0).sampler, "auto: random");
  for (int i = 0; i < 12; ++i) study.RunOne();
  EXPECT_EQ(study.Suggest(12).sampler, "auto: gp (12 trials)");
  EXPECT_TRUE(study.Suggest(12).score.has_value());
  for (int i = 12; i < 30; ++i) study.RunOne();
  EXPECT_LT(study.best_loss(), 1e-4);
}

TEST(AutoSampler, SeveralObjectivesWork) {
  StudySpec study = BowlStudy();
  study.objectives.push_back(Objective{});
  const auto sampler = MakeSampler(study);
  for (int64_t i = 0; i < 15; ++i) {
    const auto suggestion = sampler->Suggest({TrialNumber{i}, study.space, GiB(16), nullptr});
    ASSERT_TRUE(suggestion.ok());
    const double x = *FindDouble(suggestion->params, "x");
    sampler->Observe({i + 1,
                      {.number = TrialNumber{i},
                       .params = suggestion->params,
                       .state = TrialState::kCompleted,
                       .losses = {x, 1.0 - x}}});
  }
  EXPECT_EQ(sampler->Suggest({TrialNumber{15}, study.space, GiB(16), nullptr})->sampler,
            "auto: tpe (2 objectives)");
}

// What each proposes is what it would alone: the process, and TPE where much fails.
TEST(AutoSampler, ProposesWhatTheChosenWouldAlone) {
  StudySpec study = BowlStudy();
  const auto sampler = MakeSampler(study);
  study.sampler.type = "tpe";
  const auto tpe = MakeSampler(study);
  study.sampler.type = "gp";
  const auto process = MakeSampler(study);
  for (int64_t i = 0; i < 40; ++i) {
    const AskContext context{TrialNumber{i}, study.space, GiB(16), nullptr};
    const auto suggestion = sampler->Suggest(context);
    ASSERT_TRUE(suggestion.ok());
    const bool by_tpe = suggestion->sampler.find("tpe") != std::string::npos;
    EXPECT_EQ(by_tpe, i >= 27) << suggestion->sampler;
    EXPECT_EQ(suggestion->params, (by_tpe ? tpe : process)->Suggest(context)->params);
    const HistoryTrial trial{.number = context.number,
                             .params = suggestion->params,
                             .state = i < 20 ? TrialState::kCompleted : TrialState::kFailed,
                             .losses = {1.0}};
    for (Sampler* each : {sampler.get(), tpe.get(), process.get()}) each->Observe({i + 1, trial});
  }
}

// CMA-ES begins where the process ended, by the budget as it stands at the ask.
TEST(AutoSampler, GoesByTheBudgetOfEachAsk) {
  StudySpec study = BowlStudy();
  const auto sampler = MakeSampler(study);
  study.sampler.type = "cma-es";
  study.sampler.startup_trials = 200;
  const auto cma_es = MakeSampler(study);
  for (int64_t i = 0; i < 210; ++i) {
    const ParamMap params = {{"x", 0.001 * static_cast<double>(i)}, {"y", 0.5}};
    const HistoryTrial trial{.number = TrialNumber{i},
                             .params = params,
                             .state = TrialState::kCompleted,
                             .losses = {*Bowl(params)}};
    for (Sampler* each : {sampler.get(), cma_es.get()}) each->Observe({i + 1, trial});
  }
  AskContext context{TrialNumber{210}, study.space, GiB(16), nullptr};
  EXPECT_EQ(sampler->Suggest(context)->sampler, "auto: gp (210 trials)");
  context.budget_trials = 1000;
  const auto suggestion = sampler->Suggest(context);
  EXPECT_EQ(suggestion->sampler, "auto: cma-es (210 trials of a budget of 1000)");
  EXPECT_EQ(suggestion->params, cma_es->Suggest(context)->params);
  context.budget_trials = 200;
  EXPECT_EQ(sampler->Suggest(context)->sampler, "auto: gp (210 trials)");
}

}  // namespace
}  // namespace hpo::sampler
