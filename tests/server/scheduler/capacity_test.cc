// Which worker may run what: models, data, memory.
#include "gmock/gmock.h"
#include "server/placement/capability.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Bytes kSmall = GiB(4);
constexpr Bytes kLarge = GiB(16);

OutOfMemory OomAt(Bytes limit) {
  OutOfMemory oom;
  oom.limit = limit;
  oom.requested = MiB(100);
  return oom;
}

// Trials are proposed whatever others of their size met.
StudySpec UnlearntStudy() {
  StudySpec spec = PlainStudy();
  spec.memory.policy = MemoryPolicy::kOff;
  return spec;
}

class CapacityTest : public SchedulerFixture {
 protected:
  TrialNumber Enqueue(const std::string& study, const EnqueueRequest& request) {
    const auto number = scheduler_->enqueuer().EnqueueTrial(study, request, "");
    EXPECT_TRUE(number.ok()) << number.status();
    return number.value_or(TrialNumber{-1});
  }
};

TEST_F(CapacityTest, AnOomOnTheSmallCardRunsAgainOnTheLargeOne) {
  AddStudy(UnlearntStudy());
  const std::string small = Register(MakeWorker("small", kSmall));
  const std::string large = Register(MakeWorker("large", kLarge));
  const LeaseRef lease = MustAcquire(small, kSmall).lease;
  const FinishResult told = Finish(lease, OomAt(kSmall));
  EXPECT_EQ(told.state, TrialState::kQueued);
  EXPECT_TRUE(told.stored);
  EXPECT_EQ(Load("plain", 0).trial.min_capacity, kSmall);
  EXPECT_EQ(MustAcquire(small, kSmall).lease.trial.number, TrialNumber{1});
  const LeaseRef again = MustAcquire(large, kLarge).lease;
  EXPECT_EQ(again.trial.number, TrialNumber{0});
  EXPECT_EQ(Finish(again, OomAt(kLarge)).state, TrialState::kPruned);
  EXPECT_EQ(PruneReasonOf(*Load("plain", 0).trial.outcome), PruneReason::kOutOfMemory);
  EXPECT_EQ(Status("plain").counts.oom_met, 1);
}

TEST_F(CapacityTest, AHeartbeatThatCouldNotMeasureLeavesTheCapacity) {
  AddStudy(UnlearntStudy());
  const std::string small = Register(MakeWorker("small", kSmall));
  const std::string large = Register(MakeWorker("large", kLarge));
  ASSERT_TRUE(scheduler_->sessions().Heartbeat(large, {}, Bytes{0}).ok());
  EXPECT_EQ(Finish(MustAcquire(small, kSmall).lease, OomAt(kSmall)).state, TrialState::kQueued);
  ASSERT_TRUE(scheduler_->sessions().Heartbeat(large, {}, kSmall).ok());
  EXPECT_EQ(Finish(MustAcquire(small, kSmall).lease, OomAt(kSmall)).state, TrialState::kPruned);
}

TEST_F(CapacityTest, ATrialSettlesWhenTheLargeCardIsGone) {
  AddStudy(PlainStudy("plain", 1));
  const std::string small = Register(MakeWorker("small", kSmall));
  Register(MakeWorker("large", kLarge));
  Finish(MustAcquire(small, kSmall).lease, OomAt(kSmall));
  Pass(2 * kTtl, {{small, kSmall}});
  EXPECT_EQ(Load("plain", 0).trial.state, TrialState::kQueued);
  EXPECT_FALSE(Acquire(small, kSmall).all_studies_finished);
  Pass(absl::Seconds(10), {{small, kSmall}});
  const TrialRecord settled = Load("plain", 0);
  EXPECT_EQ(settled.trial.state, TrialState::kPruned);
  EXPECT_EQ(std::get<OutOfMemory>(*settled.trial.outcome).requested, MiB(100));
  EXPECT_TRUE(Acquire(small, kSmall).all_studies_finished);
}

TEST_F(CapacityTest, ARejectedTrialWaitsForMoreMemory) {
  AddStudy(PlainStudy());
  const std::string small = Register(MakeWorker("small", kSmall));
  Register(MakeWorker("large", kLarge));
  const LeaseRef lease = MustAcquire(small, kSmall).lease;
  const auto state = scheduler_->results().ReleaseTrial(
      "release", {.lease = lease, .reason = ReleaseReason::kRejected, .needed = GiB(6)});
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(*state, TrialState::kQueued);
  EXPECT_EQ(
      scheduler_->results()
          .ReleaseTrial("release",
                        {.lease = lease, .reason = ReleaseReason::kRejected, .needed = GiB(6)})
          .value(),
      TrialState::kQueued)
      << "the recorded answer";
  EXPECT_TRUE(absl::IsAborted(
      scheduler_->results()
          .ReleaseTrial("other", {.lease = lease, .reason = ReleaseReason::kPreempted})
          .status()));
  EXPECT_EQ(Load("plain", 0).trial.min_capacity, kSmall);
}

TEST_F(CapacityTest, AWorkerWithoutTheModelOrTheDataIsToldWhatIsMissing) {
  AddStudy(BertStudy());
  WorkerFacts no_data = MakeBertWorker("no-data");
  no_data.data_sets.clear();
  const std::string without_data = Register(no_data);
  EXPECT_THAT(Acquire(without_data).waiting_for,
              AllOf(HasSubstr("train.jsonl"), HasSubstr("prepare_criteria_data")));
  EXPECT_THAT(Status("bert").waiting_for, HasSubstr("train.jsonl"));
  WorkerFacts no_model = MakeBertWorker("no-model");
  no_model.models.clear();
  EXPECT_THAT(Acquire(Register(no_model)).waiting_for,
              AllOf(HasSubstr("tiny, absent"), HasSubstr("--models DIR")));
}

TEST_F(CapacityTest, WithoutWorkersTheStudySaysHowToStartOne) {
  AddStudy(PlainStudy());
  EXPECT_THAT(Status("plain").waiting_for, HasSubstr("hpo-worker --gpu 0"));
  Register(MakeWorker("a"));
  EXPECT_EQ(Status("plain").waiting_for, "");
  Pass(2 * kTtl + absl::Seconds(5));
  EXPECT_THAT(Status("plain").waiting_for, HasSubstr("no worker is connected"));
}

TEST_F(CapacityTest, OnlyModelsThatTheWorkerHasAreOffered) {
  const SearchSpace space = SpaceFor(BertStudy(), MakeBertWorker("a"));
  const auto& choices = std::get<CategoricalDomain>(space.Find("model.name")->domain).choices;
  EXPECT_EQ(choices, std::vector<ParamValue>{std::string("tiny")});
  EXPECT_EQ(FindString(space.model_facts.at("tiny"), "model.class"), "base");
  EXPECT_EQ(FindString(space.model_facts.at("tiny"), "model.family"), "bert");
  StudySpec listed = BertStudy();
  listed.heavy_models = {"tiny"};
  EXPECT_EQ(FindString(SpaceFor(listed, MakeBertWorker("a")).model_facts.at("tiny"), "model.class"),
            "heavy");
}

// The first model's name in the study, and on the worker.
struct NamedModels {
  StudySpec study;
  WorkerFacts worker;
};

NamedModels ModelsOfNames(const std::string& in_study, const std::string& on_worker) {
  NamedModels named{BertStudy(), MakeBertWorker("a")};
  std::get<CategoricalDomain>(named.study.space.parameters.back().domain).choices[0] = in_study;
  named.worker.models.front().name = on_worker;
  return named;
}

TEST_F(CapacityTest, AModelsShortNameFindsItOnTheWorker) {
  const auto [study, worker] = ModelsOfNames("bert-large", "bert-large-uncased");
  EXPECT_TRUE(CheckServes(study, worker).ok()) << CheckServes(study, worker);
  const ParamMap short_name = {{"model.name", std::string("bert-large")}};
  EXPECT_TRUE(CheckCanRun(study, worker, short_name).ok());
  const SearchSpace space = SpaceFor(study, worker);
  EXPECT_EQ(std::get<CategoricalDomain>(space.Find("model.name")->domain).choices,
            std::vector<ParamValue>{std::string("bert-large")});
  EXPECT_EQ(FindString(space.model_facts.at("bert-large"), "model.class"), "base")
      << "the worker's model is small, whatever its name";
  const auto [other, unlike] = ModelsOfNames("bert-large", "bert-large-cased");
  EXPECT_FALSE(CheckServes(other, unlike).ok());
}

TEST_F(CapacityTest, WhatAnEnqueuedTrialLeavesOutIsDrawnFromModelsThatAWorkerHas) {
  StudySpec study = BertStudy();
  auto& choices = std::get<CategoricalDomain>(study.space.parameters.back().domain).choices;
  for (const char* absent : {"b", "c", "d", "e", "f"}) choices.emplace_back(std::string(absent));
  AddStudy(study);
  const TrialNumber early = Enqueue("bert", {});
  EXPECT_TRUE(FindString(Load("bert", early.value).trial.params, "model.name").has_value())
      << "without a worker, any";
  Register(MakeBertWorker("a"));
  for (int i = 0; i < 8; ++i) {
    const TrialNumber number = Enqueue("bert", {});
    EXPECT_EQ(FindString(Load("bert", number.value).trial.params, "model.name"), "tiny");
  }
  const TrialNumber named = Enqueue("bert", {.params = {{"model.name", std::string("absent")}}});
  EXPECT_EQ(FindString(Load("bert", named.value).trial.params, "model.name"), "absent")
      << "who names one may have a worker to come";
}

TEST(AskFor, TellsTheBudgetOfTrials) {
  StudySpec spec = PlainStudy("plain", 7);
  EXPECT_EQ(AskFor(spec, MakeWorker("a"), TrialNumber{0}, {}).budget_trials, 7);
  spec.budget.trials.reset();
  EXPECT_EQ(AskFor(spec, MakeWorker("a"), TrialNumber{0}, {}).budget_trials, std::nullopt);
}

TEST_F(CapacityTest, PretrainedStudiesNeedWeights) {
  StudySpec spec = BertStudy();
  spec.trainer.model_init = "pretrained";
  WorkerFacts facts = MakeBertWorker("a");
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckServes(spec, facts)));
  facts.models.front().has_weights = true;
  EXPECT_TRUE(CheckServes(spec, facts).ok());
}

TEST_F(CapacityTest, ATrialTakesAllGpusOfItsWorkerNoMoreAndNoFewer) {
  StudySpec study = PlainStudy("plain", 7);
  study.trainer.command = {"torchrun", "{gpus}"};
  WorkerFacts worker = MakeWorker("a");
  worker.trainer = "torchrun {gpus}";
  worker.device.kind = "cuda";
  const auto why = [&](int64_t wanted, int64_t held) {
    study.trainer.gpus = wanted;
    worker.gpus = held;
    return std::string(CheckServes(study, worker).message());
  };
  EXPECT_EQ(why(1, 1), "");
  EXPECT_EQ(why(4, 4), "");
  EXPECT_EQ(why(4, 1),
            "study plain trains each trial on 4 GPUs (trainer.gpus), and each trial of worker a "
            "takes 1; start hpo-worker with --gpus-per-trial 4");
  EXPECT_EQ(why(1, 4),
            "study plain trains each trial on 1 GPU (trainer.gpus), and each trial of worker a "
            "takes 4; start hpo-worker with --gpus-per-trial 1");
  worker.device.kind = "cpu";
  EXPECT_EQ(why(2, 1),
            "study plain trains each trial on 2 GPUs (trainer.gpus), and worker a has none; start "
            "one on a machine with GPUs, with --gpus-per-trial 2");
  EXPECT_EQ(WorkerCommands(study), "hpo-worker --study plain --allow-commands --gpus-per-trial 2");
}

TEST_F(CapacityTest, HpoTrainerTrainsOnOneGpu) {
  StudySpec study = BertStudy();
  study.trainer.gpus = 2;
  EXPECT_EQ(CheckServes(study, MakeBertWorker("a")).message(),
            "study bert trains each trial on 2 GPUs (trainer.gpus), and hpo-trainer of worker a "
            "trains on one GPU; give the study a program of your own (trainer.command), such as "
            "torchrun");
}

TEST_F(CapacityTest, AnotherDataSetOfTheSameNameIsRefused) {
  AddStudy(BertStudy());
  WorkerFacts other = MakeBertWorker("other");
  other.data_sets.front().digest = "another-digest";
  const std::string early = Register(other);
  MustAcquire(Register(MakeBertWorker("first")));
  EXPECT_THAT(Acquire(early).waiting_for, HasSubstr("another-digest"));
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    const auto refused = scheduler_->sessions().RegisterWorker(other);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
    EXPECT_THAT(refused.status().message(),
                AllOf(HasSubstr("bert"), HasSubstr("train.jsonl"), HasSubstr("another-digest"),
                      HasSubstr("digest-of-train.jsonl")));
  }
}

TEST_F(CapacityTest, AnEnqueuedTrialThatFitsNowhereEndsWithoutStarting) {
  AddStudy(BertStudy());
  const std::string session = Register(MakeBertWorker("tight", MiB(64)));
  const TrialNumber number = Enqueue(
      "bert", {.params = {{"train.batch_size", int64_t{64}}, {"model.name", std::string("tiny")}}});
  StudySpec spec = BertStudy();
  Trial trial = Load("bert", number.value).trial;
  ASSERT_FALSE(PlaceTrial(spec, MakeBertWorker("tight", Bytes{1}), trial, {}).fits);
  const AcquireResult none = Acquire(session, Bytes{1});
  EXPECT_FALSE(none.assignment);
  const TrialRecord ended = Load("bert", number.value);
  EXPECT_EQ(ended.trial.state, TrialState::kPruned);
  EXPECT_TRUE(ended.trial.attempts.empty());
  EXPECT_EQ(PruneReasonOf(*ended.trial.outcome), PruneReason::kPredictedOutOfMemory);
  EXPECT_GT(std::get<OutOfMemory>(*ended.trial.outcome).needed, Bytes{0});
  EXPECT_EQ(Status("bert").counts.oom_predicted, 1);
}

TEST_F(CapacityTest, ACardSmallerThanItsHeadroomRunsNothingHoweverOftenItIsAsked) {
  WorkerFacts small = MakeBertWorker("small", MiB(200));
  small.device.kind = "cuda";
  small.device.total = MiB(200);
  small.device.base = MiB(300);
  MemoryKnowledge knowledge;
  knowledge.replays = std::make_shared<memory::ReplayTable>();
  Trial trial;
  trial.params = {{"train.batch_size", int64_t{8}}, {"model.name", std::string("tiny")}};
  for (int round = 0; round < 3; ++round) {
    const Placement placement = PlaceTrial(BertStudy(), small, trial, knowledge);
    EXPECT_EQ(placement.usable, Bytes{});
    EXPECT_FALSE(placement.fits);
    EXPECT_GT(placement.predicted, MiB(300));
  }
}

TEST_F(CapacityTest, AnEnqueuedTrialThatFitsALargerWorkerWaitsForIt) {
  AddStudy(BertStudy());
  const std::string tight = Register(MakeBertWorker("tight", Bytes{1}));
  const std::string roomy = Register(MakeBertWorker("roomy", kLarge));
  const TrialNumber number = Enqueue("bert", {.params = {{"model.name", std::string("tiny")}}});
  EXPECT_FALSE(Acquire(tight, Bytes{1}).assignment);
  EXPECT_EQ(Load("bert", number.value).trial.state, TrialState::kQueued);
  EXPECT_EQ(MustAcquire(roomy, kLarge).lease.trial.number, number);
}

TEST_F(CapacityTest, AnEnqueuedTrialWaitsWhileOthersHoldTheOnlyCardThatIsLargeEnough) {
  StudySpec spec = BertStudy();
  spec.budget.trials = 1;  // nothing else is proposed
  AddStudy(spec);
  WorkerFacts facts = MakeBertWorker("shared", kLarge);
  facts.device.total = kLarge;
  const std::string session = Register(facts);
  const TrialNumber number = Enqueue("bert", {.params = {{"model.name", std::string("tiny")}}});
  const AcquireResult none = Acquire(session, MiB(1));
  EXPECT_FALSE(none.assignment);
  EXPECT_THAT(Status("bert").waiting_for, HasSubstr("others hold 16.00 GiB of the device"));
  EXPECT_EQ(Load("bert", number.value).trial.state, TrialState::kQueued);
  EXPECT_EQ(MustAcquire(session, kLarge).lease.trial.number, number);
}

TEST_F(CapacityTest, WhatAnEnqueuedTrialWaitsForIsToldBesideWhyNothingIsProposed) {
  AddStudy(BertStudy());
  WorkerFacts facts = MakeBertWorker("shared", kLarge);
  facts.device.total = kLarge;
  const std::string session = Register(facts);
  Enqueue("bert", {.params = {{"model.name", std::string("tiny")}}});
  const AcquireResult none = Acquire(session, MiB(1));
  EXPECT_FALSE(none.assignment);
  for (const std::string& told : {none.waiting_for, Status("bert").waiting_for}) {
    EXPECT_THAT(told, HasSubstr("others hold 16.00 GiB of the device"));
    EXPECT_THAT(told, HasSubstr("nothing fits: needs"));
  }
}

// Beyond the whole card nothing is to be waited for, whoever holds it.
TEST_F(CapacityTest, AnEnqueuedTrialThatNoEmptyCardRunsEndsThoughOthersHoldIt) {
  AddStudy(BertStudy());
  WorkerFacts facts = MakeBertWorker("shared", GiB(1));
  facts.device.kind = "cuda";
  facts.device.total = GiB(1);
  facts.device.base = GiB(2);
  const std::string session = Register(facts);
  const TrialNumber number = Enqueue("bert", {.params = {{"model.name", std::string("tiny")}}});
  EXPECT_FALSE(Acquire(session, MiB(1)).assignment);
  const TrialRecord ended = Load("bert", number.value);
  ASSERT_EQ(ended.trial.state, TrialState::kPruned);
  EXPECT_EQ(std::get<OutOfMemory>(*ended.trial.outcome).limit, MiB(768));
}

// An OOM while others hold most of the card says nothing of the whole card: again where more is
// free, and no longer than until no such card has been free for two TTLs.
TEST_F(CapacityTest, AnOomBesideOthersRunsAgainWhenTheyHaveLeft) {
  AddStudy(UnlearntStudy());
  WorkerFacts facts = MakeWorker("shared", kLarge);
  facts.device.total = kLarge;
  const std::string session = Register(facts);
  EXPECT_EQ(Finish(MustAcquire(session, kSmall).lease, OomAt(kSmall)).state, TrialState::kQueued);
  EXPECT_EQ(MustAcquire(session, kSmall).lease.trial.number, TrialNumber{1});
  const LeaseRef again = MustAcquire(session, kLarge).lease;
  EXPECT_EQ(again.trial.number, TrialNumber{0});
  EXPECT_EQ(Finish(again, OomAt(kLarge)).state, TrialState::kPruned);
}

TEST_F(CapacityTest, WhenNothingFitsTheWorkerIsToldTheSmallestNeed) {
  AddStudy(BertStudy());
  const AcquireResult none = Acquire(Register(MakeBertWorker("tight", Bytes{1})), Bytes{1});
  EXPECT_FALSE(none.assignment);
  EXPECT_THAT(none.waiting_for, HasSubstr("nothing fits: needs"));
  EXPECT_THAT(Status("bert").waiting_for, HasSubstr("nothing fits: needs"));
  EXPECT_EQ(Status("bert").counts, TrialCounts{});
}

TEST_F(CapacityTest, ADemonstrationRunsUnadmittedAndIsCountedApart) {
  AddStudy(BertStudy("bert"));
  const std::string session = Register(MakeBertWorker("tight", Bytes{1}));
  Enqueue("bert",
          {.params = {{"model.name", std::string("tiny")}, {"train.batch_size", int64_t{8}}},
           .demonstration = true,
           .forced_micro_batch = 4});
  const Assignment given = MustAcquire(session, Bytes{1});
  EXPECT_TRUE(given.demonstration);
  EXPECT_FALSE(given.task.admission);
  EXPECT_EQ(given.task.plan.micro_batch, 4);
  Complete(given.lease, 0.99);
  const StudyStatus status = Status("bert");
  EXPECT_EQ(status.counts, TrialCounts{.demonstration = 1});
  EXPECT_FALSE(status.best_trial);
  EXPECT_TRUE((*scheduler_->state().studies.Find("bert"))->history().trials().empty());
}

}  // namespace
}  // namespace hpo::server
