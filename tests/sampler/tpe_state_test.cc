// The state that TPE keeps between suggestions is what it would build from the stored trials.
#include <cmath>
#include <map>

#include "gtest/gtest.h"
#include "sampler/factory/make_sampler.h"
#include "sampler/tpe/tpe_model.h"
#include "sampler/tpe/tpe_sampler.h"
#include "tests/sampler/simulated_study.h"

namespace hpo::sampler {
namespace {

CategoricalDomain Names(const std::vector<std::string>& names) {
  CategoricalDomain domain;
  for (const std::string& name : names) domain.choices.emplace_back(name);
  return domain;
}

// Of 40 trials the best three have the first choice, the next seven the second. A quarter is
// good, of which the 28 trials that ran on cards of 8 GB count a fifth on larger ones.
TEST(TpeModel, TrialsOnSmallerCardsMakeFewTrialsGood) {
  SearchSpace space;
  const CategoricalDomain names = Names({"best", "next", "other", "none"});
  space.parameters = {MakeParameter("name", names)};
  History history;
  std::vector<TrialNumber> numbers;
  for (int64_t i = 0; i < 40; ++i) {
    const size_t choice = i < 3 ? 0 : i < 10 ? 1 : 2;
    numbers.push_back(TrialNumber{i});
    history.Apply({i + 1,
                   {.number = numbers.back(),
                    .params = {{"name", names.choices[choice]}},
                    .state = TrialState::kCompleted,
                    .losses = {static_cast<double>(i)},
                    .memory = {{.bytes = GiB(4), .limit = i < 12 ? GiB(75) : GiB(8)}}}});
  }
  const auto share_of_next = [&](Bytes capacity) {
    TpeModel model(space, capacity, MemoryPolicy::kPlan, {});
    model.Update(history, numbers);
    Rng rng(1, 7);
    int drawn = 0;
    constexpr int kDraws = 4000;
    for (int i = 0; i < kDraws; ++i) drawn += model.DrawGood(rng)->at("name") == names.choices[1];
    return static_cast<double>(drawn) / kDraws;
  };
  // Of ten good ones by the cube of their places, of five, with a prior of four choices.
  EXPECT_NEAR(share_of_next(GiB(8)), 0.255, 0.025);
  EXPECT_NEAR(share_of_next(GiB(80)), 0.169, 0.025);
}

// A kept model answers for a capacity what one that is built for it would.
TEST(TpeState, AskingForOtherCardsFirstChangesNothing) {
  StudySpec study;
  study.sampler = {.type = "tpe", .seed = 3};
  study.space.parameters = {MakeParameter("x", FloatDomain{.low = 0.0, .high = 1.0})};
  const auto history_of = [&](Sampler& sampler) {
    for (int64_t i = 0; i < 60; ++i) {
      const double x = static_cast<double>(i * 37 % 60) / 60.0;
      sampler.Observe({i + 1,
                       {.number = TrialNumber{i},
                        .params = {{"x", x}},
                        .state = TrialState::kCompleted,
                        .losses = {x},
                        .memory = {{.bytes = MiB(1), .limit = i % 3 == 0 ? GiB(80) : GiB(8)}}}});
    }
  };
  const auto asked = [&](Sampler& sampler, Bytes capacity) {
    return *sampler.Suggest({TrialNumber{60}, study.space, capacity, nullptr})->score;
  };
  const auto kept = MakeSampler(study);
  history_of(*kept);
  const double small = asked(*kept, GiB(8));
  const double large = asked(*kept, GiB(80));
  EXPECT_NE(small, large);
  const auto anew = MakeSampler(study);
  history_of(*anew);
  EXPECT_EQ(asked(*anew, GiB(80)), large);
  EXPECT_EQ(asked(*anew, GiB(8)), small);
}

// Every kind of axis, a condition and an effective batch.
SearchSpace StateSpace() {
  SearchSpace space;
  space.parameters = {MakeParameter("model.name", Names({"small", "large", "other"})),
                      MakeParameter("rate", FloatDomain{.low = 1e-6, .high = 1e-1, .log = true}),
                      MakeParameter("momentum", FloatDomain{.low = 0.0, .high = 1.0}),
                      MakeParameter("drop", FloatDomain{.low = 0.0, .high = 0.5, .step = 0.1}),
                      MakeParameter("width", IntDomain{.low = 1, .high = 1024, .log = true}),
                      MakeParameter("train.batch_size", IntDomain{.low = 8, .high = 64, .step = 8}),
                      MakeParameter("train.grad_accum", IntDomain{.low = 1, .high = 4}),
                      MakeParameter("seed", IntDomain{.low = 1, .high = 1000})};
  space.parameters[2].when = {{"model.name", {std::string("large")}}};
  space.parameters.back().modelled = false;
  return space;
}

double LossOf(const ParamMap& params) {
  const double rate = std::log10(*FindDouble(params, "rate")) + 3.0;
  const double width = static_cast<double>(*FindInt(params, "width")) / 1024.0 - 0.4;
  return rate * rate + width * width + FindDouble(params, "momentum").value_or(0.5);
}

// A study whose trials start, report, end in every way and are told of again.
class EventfulStudy {
 public:
  EventfulStudy(uint64_t seed, size_t num_objectives)
      : rng_(seed, 77), num_objectives_(num_objectives), sampler_(Study(seed)) {
    study_ = Study(seed);
  }

  void Step() {
    const uint64_t what = rng_.Below(10);
    if (open_.empty() || what < 4) return Start();
    const size_t chosen = rng_.Below(open_.size());
    HistoryTrial trial = trials_.at(open_[chosen]);
    if (what == 4) {
      trial.intermediate.Add(static_cast<int64_t>(trial.intermediate.size()), rng_.Uniform());
    } else {
      End(trial);
      open_.erase(open_.begin() + static_cast<ptrdiff_t>(chosen));
    }
    Tell(trial);
  }

  // What an old trial is told to be once more, or to have become after all.
  void Revise() {
    if (trials_.empty()) return;
    auto chosen = trials_.begin();
    std::advance(chosen, static_cast<ptrdiff_t>(rng_.Below(trials_.size())));
    HistoryTrial trial = chosen->second;
    if (trial.state == TrialState::kRunning) return;
    trial.losses.clear();
    trial.memory.clear();
    trial.prune_reason.reset();
    trial.violation = 0.0;
    End(trial);
    Tell(trial);
  }

  absl::StatusOr<Suggestion> Suggest(const TpeSampler& sampler, Bytes capacity) const {
    return sampler.Suggest({TrialNumber{next_}, StateSpace(), capacity, nullptr});
  }

  // The kept state against one that has only ever seen the trials as they are now.
  void ExpectEqualToARebuild() const {
    TpeSampler rebuilt(study_);
    for (const auto& [number, trial] : trials_) rebuilt.Observe({sequence_, trial});
    for (const int64_t gib : {8, 16, 80}) {
      const auto kept = Suggest(sampler_, GiB(gib));
      const auto anew = Suggest(rebuilt, GiB(gib));
      ASSERT_TRUE(kept.ok() && anew.ok());
      EXPECT_EQ(kept->params, anew->params);
      EXPECT_EQ(kept->sampler, anew->sampler);
      EXPECT_EQ(kept->score, anew->score);  // to the last bit
    }
  }

 private:
  static StudySpec Study(uint64_t seed) {
    StudySpec study;
    study.sampler = {.type = "tpe", .seed = seed, .startup_trials = 5};
    study.space = StateSpace();
    return study;
  }

  void Start() {
    const auto suggestion = Suggest(sampler_, GiB(16));
    ASSERT_TRUE(suggestion.ok());
    open_.push_back(next_);
    Tell({.number = TrialNumber{next_++}, .params = suggestion->params});
  }

  void End(HistoryTrial& trial) {
    const uint64_t how = rng_.Below(12);
    trial.state = TrialState::kPruned;
    if (how < 6) {
      trial.state = TrialState::kCompleted;
      trial.losses.assign(num_objectives_, LossOf(trial.params));
      trial.losses.back() += how == 0 ? std::nan("") : 3.0 * rng_.Uniform();
      trial.memory = {{.bytes = GiB(static_cast<int64_t>(1 + rng_.Below(20))), .limit = GiB(24)}};
      if (how == 5) trial.violation = rng_.Uniform();
    } else if (how < 8) {
      trial.prune_reason = PruneReason::kPruner;
    } else if (how == 8) {
      trial.state = TrialState::kFailed;
    } else if (how == 9) {
      trial.state = TrialState::kCancelled;
    } else if (how == 10) {
      trial.prune_reason = PruneReason::kHostOutOfMemory;
    } else {
      trial.prune_reason = PruneReason::kOutOfMemory;
      trial.memory = {{.bytes = GiB(12), .censored = true, .limit = GiB(12)}};
    }
  }

  void Tell(const HistoryTrial& trial) {
    trials_[trial.number.value] = trial;
    sampler_.Observe({++sequence_, trial});
  }

  Rng rng_;
  size_t num_objectives_;
  StudySpec study_;
  TpeSampler sampler_;
  std::map<int64_t, HistoryTrial> trials_;
  std::vector<int64_t> open_;
  int64_t next_ = 0;
  int64_t sequence_ = 0;
};

class KeptState : public testing::TestWithParam<size_t> {};

TEST_P(KeptState, EqualsARebuild) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    EventfulStudy study(seed, GetParam());
    for (int i = 0; i < 400; ++i) {
      study.Step();
      if (i % 9 == 0) study.Revise();
      if (i % 20 == 0 || i < 30) study.ExpectEqualToARebuild();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Objectives, KeptState, testing::Values(1, 2));

// One that grows trial by trial against one that sorts them all at once, beyond the size at which
// bandwidths stop to depend on the number of trials.
TEST(TpeState, GrownEqualsBuiltAtOnceForManyTrials) {
  const SearchSpace space = StateSpace();
  const SamplerSpec spec{.type = "random", .seed = 3};
  History history;
  TpeModel grown(space, GiB(16), MemoryPolicy::kPlan, {});
  std::vector<TrialNumber> numbers;
  StudySpec study;
  study.sampler = spec;
  const auto random = MakeSampler(study);
  std::vector<ParamMap> probes;
  for (int64_t i = 0; i < 1500; ++i) {
    const TrialNumber number{i};
    ParamMap params = random->Suggest({number, space, GiB(16), nullptr})->params;
    if (i % 60 == 0) probes.push_back(params);
    const double loss = LossOf(params);
    history.Apply({i + 1,
                   {.number = number,
                    .params = std::move(params),
                    .state = i % 7 == 0 ? TrialState::kFailed : TrialState::kCompleted,
                    .losses = {loss}}});
    numbers.push_back(number);
    grown.Update(history, {&number, 1});
  }
  TpeModel built(space, GiB(16), MemoryPolicy::kPlan, {});
  built.Update(history, numbers);
  std::vector<const ParamMap*> asked;
  for (const ParamMap& params : probes) asked.push_back(&params);
  EXPECT_EQ(grown.Score(asked).totals(), built.Score(asked).totals());
  Rng one(1, 1);
  Rng other(1, 1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(grown.DrawGood(one), built.DrawGood(other));
}

// Parameters of a trial never change in a study; where they do all the same, nothing old is left.
TEST(TpeState, ForgetsParametersThatWereReplaced) {
  StudySpec study;
  study.sampler = {.type = "tpe", .seed = 1, .startup_trials = 0};
  study.space.parameters = {MakeParameter("x", FloatDomain{0.0, 1.0})};
  const auto replaced = MakeSampler(study);
  const auto direct = MakeSampler(study);
  const auto done = [](double x) {
    return HistoryTrial{.number = TrialNumber{0},
                        .params = {{"x", x}},
                        .state = TrialState::kCompleted,
                        .losses = {1.0}};
  };
  const AskContext context{TrialNumber{1}, study.space, GiB(1), nullptr};
  replaced->Observe({1, done(0.9)});
  ASSERT_TRUE(replaced->Suggest(context).ok());
  replaced->Observe({2, done(0.1)});
  direct->Observe({2, done(0.1)});
  EXPECT_EQ(replaced->Suggest(context)->params, direct->Suggest(context)->params);
}

}  // namespace
}  // namespace hpo::sampler
