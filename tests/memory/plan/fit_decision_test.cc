#include "memory/plan/fit_decision.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "memory/need/memory_replay.h"
#include "tests/memory/tiny_input.h"

namespace hpo::memory {
namespace {

constexpr const char* kTokenizer = "vocabulary-digest";

StudySpec Study() {
  StudySpec study;
  study.trainer.train = "train.jsonl";
  study.trainer.validation = "valid.jsonl";
  return study;
}

WorkerFacts Worker() {
  WorkerFacts worker;
  worker.device.kind = "cpu";
  worker.models.push_back(
      {.name = "bert", .shape = BertBaseInput().model, .tokenizer_digest = kTokenizer});
  worker.data_sets.push_back({.name = "train.jsonl",
                              .labels = {"no", "yes"},
                              .lengths = {{kTokenizer, {{20, 900}, {100, 3}, {300, 0}}}}});
  worker.data_sets.push_back({.name = "valid.jsonl", .lengths = {{kTokenizer, {{30, 100}}}}});
  return worker;
}

ParamMap Params(int64_t batch_size = 8) {
  return {{"model.name", std::string("bert")},
          {"train.batch_size", batch_size},
          {"train.grad_accum", int64_t{2}},
          {"tok.max_length", int64_t{512}}};
}

// What `Worker` and `Params` amount to.
EstimateInput ExpectedInput(int64_t batch_size = 8) {
  EstimateInput input = BertBaseInput();
  input.config.batch_size = batch_size;
  input.config.grad_accum = 2;
  input.workload.train_lengths = {{20, 900}, {100, 3}};
  input.workload.validation_lengths = {{30, 100}};
  return input;
}

TEST(FitDecider, EstimatesFromTheWorkersModelAndData) {
  const auto planned = FitDecider(Study(), Worker()).Plan(Params(), GiB(64));
  ASSERT_TRUE(planned.ok()) << planned.status();
  ASSERT_TRUE(planned->has_value());
  const auto expected = PlanMemory(ExpectedInput(), MemorySpec{}, GiB(64));
  EXPECT_EQ(**planned, *expected);
  EXPECT_EQ((*planned)->plan, PlanOf(16, 8));
}

TEST(FitDecider, AModelsShortNameMeansTheWorkersModel) {
  WorkerFacts worker = Worker();
  worker.models.front().name = "bert-large-uncased";
  ParamMap params = Params();
  params["model.name"] = std::string("bert-large");
  const auto planned = FitDecider(Study(), worker).Plan(params, GiB(64));
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_TRUE(planned->has_value());
  worker.models.push_back(worker.models.front());
  worker.models.back().name = "bert-large";
  worker.models.back().shape.num_layers = 1;
  const auto smaller = FitDecider(Study(), worker).Plan(params, GiB(64));
  ASSERT_TRUE(smaller.ok()) << smaller.status();
  EXPECT_LT((*smaller)->estimate.needed_limit, (*planned)->estimate.needed_limit)
      << "one of that very name comes first";
}

TEST(FitDecider, RowsOfUnknownLengthAreAsLongAsAllowed) {
  EstimateInput longest = ExpectedInput();
  longest.workload.train_lengths.clear();
  const auto expected = PlanMemory(longest, MemorySpec{}, GiB(64));
  WorkerFacts other_vocabulary = Worker();
  other_vocabulary.data_sets[0].lengths = {{"another digest", {{20, 900}}}};
  WorkerFacts no_data = Worker();
  no_data.data_sets.erase(no_data.data_sets.begin());
  for (const WorkerFacts& worker : {other_vocabulary, no_data}) {
    EXPECT_EQ(**FitDecider(Study(), worker).Plan(Params(), GiB(64)), *expected);
  }
}

TEST(FitDecider, TheStudysLabelsBeatTheData) {
  StudySpec study = Study();
  const Bytes two = FitDecider(study, Worker()).Decide(Params(), GiB(64)).needed;
  study.trainer.labels.assign(100'000, "label");
  EXPECT_GT(FitDecider(study, Worker()).Decide(Params(), GiB(64)).needed, two + MiB(1));
}

// Whatever is unknown, fits, with the literal plan and no claim about bytes.
TEST(FitDecider, ATextOfAspectsIsAsManyRowsAsItAsks) {
  for (const TaskKind task : {TaskKind::kMultiQuery, TaskKind::kMultiQuerySpans}) {
    StudySpec study = Study();
    study.trainer.task = std::string(Name(task));
    WorkerFacts worker = Worker();
    worker.data_sets[0].lengths[kQueryCounts] = {{1, 90}, {5, 3}, {26, 1}};
    worker.data_sets[1].lengths[kQueryCounts] = {{2, 50}};
    EstimateInput input = ExpectedInput();
    input.workload.task = task;
    input.workload.num_labels = 4;  // two classes, valence and arousal
    input.workload.train_queries = {{1, 90}, {5, 3}, {26, 1}};
    input.workload.validation_queries = {{2, 50}};
    const auto planned = FitDecider(study, worker).Plan(Params(), GiB(64));
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_EQ(**planned, *PlanMemory(input, MemorySpec{}, GiB(64))) << Name(task);
  }
}

TEST(FitDecider, WhatIsNotKnownFits) {
  using Change = std::function<void(StudySpec&, WorkerFacts&, ParamMap&)>;
  const std::pair<const char*, Change> cases[] = {
      {"another model", [](auto&, auto&, auto& p) { p["model.name"] = std::string("gpt"); }},
      {"no model", [](auto&, auto&, auto& p) { p.erase("model.name"); }},
      {"policy off", [](auto& s, auto&, auto&) { s.memory.policy = MemoryPolicy::kOff; }},
      {"a trainer that does not plan", [](auto&, auto& w, auto&) { w.plans = false; }},
      {"a family we cannot run", [](auto&, auto& w, auto&) { w.models[0].shape.family = "t5"; }},
  };
  for (const auto& [name, change] : cases) {
    SCOPED_TRACE(name);
    StudySpec study = Study();
    WorkerFacts worker = Worker();
    ParamMap params = Params();
    change(study, worker, params);
    const FitDecider decider(study, worker);
    const auto planned = decider.Plan(params, Bytes{});
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_FALSE(planned->has_value());
    EXPECT_EQ(decider.Decide(params, Bytes{}),
              (Fit{.fits = true, .needed = Bytes{}, .plan = PlanOf(16, 8)}));
  }
}

TEST(FitDecider, BadParametersAreNotMemorysBusiness) {
  const FitDecider decider(Study(), Worker());
  ParamMap params = Params();
  params["train.batch_size"] = std::string("many");
  EXPECT_EQ(decider.Plan(params, GiB(1)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decider.Decide(params, GiB(1)), Fit{});
}

TEST(FitDecider, DefaultsOfTheStudyFillTheGaps) {
  StudySpec study = Study();
  study.trainer.defaults = Params();
  const FitDecider decider(study, Worker());
  EXPECT_EQ(decider.Decide({}, GiB(64)), decider.Decide(Params(), GiB(64)));
  EXPECT_GT(decider.Decide({}, GiB(64)).needed, GiB(1));
}

// policy plan: what fits with one row fits; strict: the batch fits or not.
TEST(FitDecider, DecidesByPolicyExactlyAtTheLimit) {
  StudySpec plan = Study();
  StudySpec strict = Study();
  strict.memory.policy = MemoryPolicy::kStrict;
  const Bytes one_row = ReplayMemory(ExpectedInput(32), PlanOf(64, 1))->needed_limit;
  const Bytes whole = ReplayMemory(ExpectedInput(32), PlanOf(64, 32))->needed_limit;
  ASSERT_LT(one_row, whole);
  struct Case {
    StudySpec study;
    Bytes capacity;
    bool fits;
    int64_t micro_batch;
  };
  const Case cases[] = {{plan, one_row, true, 1},  {plan, one_row - Bytes{1}, false, 1},
                        {plan, whole, true, 32},   {plan, whole - Bytes{1}, true, 31},
                        {strict, whole, true, 32}, {strict, whole - Bytes{1}, false, 32}};
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.capacity.count << " " << c.micro_batch);
    const Fit fit = FitDecider(c.study, Worker()).Decide(Params(32), c.capacity);
    EXPECT_EQ(fit.fits, c.fits);
    EXPECT_EQ(fit.plan, PlanOf(64, c.micro_batch));
  }
}

WorkerFacts Card() {
  WorkerFacts card = Worker();
  card.device.kind = "cuda";
  return card;
}

// No headroom, so that capacity is what may be used.
StudySpec Exactly(MemoryPolicy policy) {
  StudySpec study = Study();
  study.memory.policy = policy;
  study.memory.headroom = Bytes{};
  return study;
}

Bytes NeedOnCard(int64_t micro_batch) {
  EstimateInput input = ExpectedInput(32);
  input.device.kind = "cuda";
  return ReplayMemory(input, PlanOf(64, micro_batch))->needed_limit;
}

TEST(FitDecider, KeepsTheMarginOfTheConfigurationsClassFree) {
  const Bytes need = NeedOnCard(32);
  const ResidualClass of{.device_kind = "cuda", .band = BandOf(need)};
  const StudySpec study = Exactly(MemoryPolicy::kStrict);
  for (const double learnt : {0.0, 0.25}) {
    MarginTable margins;
    if (learnt > 0.0) margins.Observe({.residual_class = of, .score = learnt});
    const FitDecider decider(study, Card(), {.margins = margins});
    const Bytes required = WithMargin(need, learnt > 0.0 ? learnt : 0.03);
    const Fit at_limit = decider.Decide(Params(32), required);
    EXPECT_TRUE(at_limit.fits);
    EXPECT_EQ(at_limit.needed, required);
    EXPECT_FALSE(decider.Decide(Params(32), required - Bytes{1}).fits);
  }
}

TEST(FitDecider, PlansTheLargestMicroBatchThatFitsWithItsMargin) {
  const FitDecider decider(Exactly(MemoryPolicy::kPlan), Card());
  for (const Bytes capacity : {NeedOnCard(24), NeedOnCard(12), NeedOnCard(3)}) {
    const Fit fit = decider.Decide(Params(32), capacity);
    EXPECT_TRUE(fit.fits);
    EXPECT_LE(WithMargin(NeedOnCard(fit.plan.micro_batch), 0.03), capacity);
    EXPECT_GT(WithMargin(NeedOnCard(fit.plan.micro_batch + 1), 0.03), capacity);
  }
}

// Where one band's margin rules a plan out, a smaller plan's band decides by its own.
TEST(FitDecider, AMarginOfOneBandDoesNotRuleOutAnother) {
  MarginTable margins;
  margins.Observe(
      {.residual_class = {.device_kind = "cuda", .band = NeedBand::kAbove10GiB}, .score = 3.0});
  const auto planned = FitDecider(Exactly(MemoryPolicy::kPlan), Card(), {.margins = margins})
                           .Plan(Params(256), GiB(16));
  EXPECT_TRUE((*planned)->fits);
  EXPECT_EQ((*planned)->margin, 0.03);
  EXPECT_LE((*planned)->estimate.needed_limit, GiB(10));
  EXPECT_GT((*planned)->estimate.needed_limit, GiB(9));
  const auto without = FitDecider(Exactly(MemoryPolicy::kPlan), Card()).Plan(Params(256), GiB(16));
  EXPECT_GT((*without)->estimate.needed_limit, GiB(10));
}

// What the sampler is told without a replay is what a placement finds with one.
TEST(FitDecider, DecidesWithoutKnowingAsItDoesWithKnowing) {
  for (const MemoryPolicy policy : {MemoryPolicy::kPlan, MemoryPolicy::kStrict}) {
    const FitDecider decider(Exactly(policy), Card());
    for (const Bytes capacity : {GiB(2), GiB(3), GiB(5), GiB(8), GiB(12), GiB(40)}) {
      for (const int64_t batch_size : {1, 16, 48, 150}) {
        SCOPED_TRACE(::testing::Message() << capacity.count << " " << batch_size);
        const Fit fit = decider.Decide(Params(batch_size), capacity);
        const auto planned = decider.Plan(Params(batch_size), capacity);
        EXPECT_EQ(fit.fits, (*planned)->fits);
        EXPECT_EQ(fit.plan, (*planned)->plan);
        EXPECT_EQ(fit.fits, fit.needed <= capacity);
        if (fit.fits) {
          EXPECT_EQ(fit.needed, RequiredBytes(**planned));
        } else {
          EXPECT_LE(fit.needed, std::max(capacity + Bytes{1}, RequiredBytes(**planned)));
        }
      }
    }
  }
}

// A bound would refuse what lies between the need and itself.
TEST(FitDecider, RefusesNothingThatAReplayLetsRun) {
  const Bytes need = NeedOnCard(32);
  EstimateInput input = ExpectedInput(32);
  input.device.kind = "cuda";
  ASSERT_LT(need, EstimateMemory(input, PlanOf(64, 32))->needed_limit);
  const FitDecider decider(Exactly(MemoryPolicy::kStrict), Card());
  EXPECT_TRUE(decider.Decide(Params(32), WithMargin(need, 0.03)).fits);
  EXPECT_FALSE(decider.Decide(Params(32), WithMargin(need, 0.03) - Bytes{1}).fits);
}

// The server knows the histogram, a placement two rows of it.
TEST(FitDecider, CondensedLengthsNeedWhatAllOfThemDo) {
  WorkerFacts card = Card();
  card.data_sets[0].lengths = {{kTokenizer, {{20, 300}, {64, 500}, {90, 100}, {480, 2}}}};
  EstimateInput input = ExpectedInput(32);
  input.device.kind = "cuda";
  input.workload.train_lengths = card.data_sets[0].lengths[kTokenizer];
  const auto planned = FitDecider(Exactly(MemoryPolicy::kStrict), card).Plan(Params(32), GiB(64));
  EXPECT_EQ((*planned)->estimate, *ReplayMemory(input, PlanOf(64, 32)));
}

TEST(FitDecider, SharesWhatWasReplayed) {
  const auto replays = std::make_shared<ReplayTable>();
  const FitDecider first(Exactly(MemoryPolicy::kStrict), Card(), {}, replays);
  const FitDecider second(Exactly(MemoryPolicy::kPlan), Card(), {}, replays);
  EXPECT_EQ(*first.Plan(Params(32), GiB(64)), *second.Plan(Params(32), GiB(64)));
  EXPECT_EQ((*first.Estimate(Params(32), PlanOf(64, 32)))->estimate,
            (*second.Plan(Params(32), GiB(64)))->estimate);
}

TEST(CapacityFor, IsTheSmallestOfWhichSoMuchIsUsable) {
  const DeviceProfile card{.kind = "cuda"};
  for (const Bytes usable : {Bytes{1}, MiB(100), GiB(11), GiB(80) + Bytes{1}}) {
    const Bytes capacity = CapacityFor(usable, card, {});
    EXPECT_GE(UsableBytes(capacity, card, {}), usable);
    EXPECT_LT(UsableBytes(capacity - MiB(1), card, {}), usable);
  }
}

// Of a trainer that says nothing but what it used, decisions go by that.
TEST(FitDecider, WithoutAnEstimateWhatWasLearntDecides) {
  const std::vector<NeedObservation> met = {{Params(16), GiB(2), /*censored=*/true}};
  SearchSpace space;
  space.parameters = {Parameter{.name = "train.batch_size",
                                .domain = IntDomain{.low = 1, .high = 64},
                                .when = {},
                                .default_value = {}}};
  const MemoryEvidence evidence{.learned = LearnedNeed(space, {}, met)};
  StudySpec strict = Study();
  strict.memory.policy = MemoryPolicy::kStrict;
  StudySpec off = Study();
  off.memory.policy = MemoryPolicy::kOff;
  WorkerFacts foreign = Worker();
  foreign.plans = false;
  WorkerFacts planning = Worker();
  planning.models.clear();
  struct Case {
    const char* name;
    StudySpec study;
    WorkerFacts worker;
    bool learns;
  };
  const Case cases[] = {{"a trainer that does not plan", Study(), foreign, true},
                        {"one that does, of a model it lacks", Study(), planning, false},
                        {"the same, the batch being literal", strict, planning, true},
                        {"memory left alone", off, foreign, false}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const FitDecider decider(c.study, c.worker, evidence);
    EXPECT_EQ(decider.Learned(Params(16), GiB(2)).has_value(), c.learns);
    EXPECT_EQ(decider.Decide(Params(16), GiB(2)).fits, !c.learns);
    EXPECT_EQ(decider.Decide(Params(16), GiB(2)).plan, PlanOf(32, 16));
    EXPECT_TRUE(decider.Decide(Params(15), GiB(2)).fits);
    EXPECT_TRUE(decider.Decide(Params(16), GiB(3)).fits);
  }
  EXPECT_TRUE(FitDecider(Study(), Worker(), evidence).Decide(Params(16), GiB(64)).fits)
      << "an estimate comes first";
}

TEST(FitDecider, ABatchOfCandidatesIsDecidedInOrder) {
  BatchFeasibility feasibility;
  {
    const FitDecider decider(Study(), Worker());
    feasibility = decider.At(GiB(2));
  }  // the function outlives the decider
  const std::vector<ParamMap> candidates = {Params(2), Params(64), {}, Params(8)};
  const std::vector<Fit> fits = feasibility(candidates);
  ASSERT_EQ(fits.size(), candidates.size());
  for (size_t i = 0; i < fits.size(); ++i) {
    EXPECT_EQ(fits[i], FitDecider(Study(), Worker()).Decide(candidates[i], GiB(2)));
  }
  EXPECT_TRUE(feasibility({}).empty());
}

TEST(UsableBytes, LeavesTheHeadroomFree) {
  const DeviceProfile cpu{.kind = "cpu"};
  const DeviceProfile cuda{.kind = "cuda"};
  MemorySpec asked;
  asked.headroom = GiB(1);
  MemorySpec none;
  none.headroom = Bytes{};
  struct Case {
    Bytes capacity;
    DeviceProfile device;
    MemorySpec memory;
    Bytes expected;
  };
  const Case cases[] = {
      {GiB(2), cpu, {}, GiB(2)},
      {GiB(4), cuda, {}, GiB(4) - MiB(256)},  // 2 % would be 82 MiB
      {Bytes{100'000'000'000}, cuda, {}, Bytes{98'000'000'000}},
      {MiB(100), cuda, {}, Bytes{}},
      {GiB(4), cuda, asked, GiB(3)},
      {GiB(4), cpu, asked, GiB(3)},
      {GiB(4), cuda, none, GiB(4)},
      {Bytes{}, cpu, {}, Bytes{}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.capacity.count << " " << c.device.kind);
    EXPECT_EQ(UsableBytes(c.capacity, c.device, c.memory), c.expected);
  }
}

TEST(QuantizeCapacity, RoundsDownTo64MiBAndFinerBelow1GiB) {
  EXPECT_EQ(QuantizeCapacity(GiB(24)), GiB(24));
  EXPECT_EQ(QuantizeCapacity(GiB(2) - Bytes{1}), GiB(2) - MiB(64));
  EXPECT_EQ(QuantizeCapacity(GiB(1)), GiB(1));
  EXPECT_EQ(QuantizeCapacity(GiB(1) - Bytes{1}), MiB(1023));
  EXPECT_EQ(QuantizeCapacity(MiB(8)), MiB(8));
  EXPECT_EQ(QuantizeCapacity(MiB(1) - Bytes{1}), Bytes{});
}

TEST(ExplainMisfit, SaysNeededAndAllowed) {
  PlannedMemory planned;
  planned.plan = PlanOf(64, 1);
  planned.estimate.needed_limit = MiB(9318);
  EXPECT_EQ(ExplainMisfit(planned, GiB(8)), "needs 9.10 GiB at micro-batch 1, allowed 8.00 GiB");
  planned.margin = 0.03;
  EXPECT_EQ(ExplainMisfit(planned, GiB(8)),
            "needs 9.10 GiB and 3.0 % margin at micro-batch 1, allowed 8.00 GiB");
}

// Asked again and in any order, with whatever does not matter to memory, the answer is Decide's.
TEST(FitDecider, AnswersForManyAsForEach) {
  const FitDecider decider(Exactly(MemoryPolicy::kPlan), Card());
  const Bytes capacity = NeedOnCard(12);
  const BatchFeasibility feasibility = decider.At(capacity);
  std::vector<ParamMap> candidates;
  for (const int64_t batch_size : {8, 32, 8, 64, 32}) {
    candidates.push_back(Params(batch_size));
    candidates.back()["train.lr"] = 1e-5 * static_cast<double>(candidates.size());
  }
  for (int round = 0; round < 2; ++round) {
    const std::vector<Fit> fits = feasibility(candidates);
    ASSERT_EQ(fits.size(), candidates.size());
    for (size_t i = 0; i < fits.size(); ++i) {
      EXPECT_EQ(fits[i], decider.Decide(candidates[i], capacity));
    }
  }
  ParamMap unknown = Params(8);
  unknown["model.name"] = std::string("someone/else");
  EXPECT_TRUE(feasibility({&unknown, 1}).front().fits);
}

}  // namespace
}  // namespace hpo::memory
