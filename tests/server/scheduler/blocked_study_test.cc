// What a study waits for, and whether that comes by itself; out-of-memory errors that no parameter
// explains.
#include "server/studies/blocked_study.h"

#include "gmock/gmock.h"
#include "sampler/factory/make_sampler.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Bytes kWholeCard = GiB(8);

Parameter RealNumber(const std::string& name) {
  return {.name = name,
          .domain = FloatDomain{.low = 1e-5, .high = 1e-2, .log = true},
          .when = {},
          .default_value = {}};
}

StudySpec StudyOver(std::vector<Parameter> parameters, int64_t trials = 6) {
  StudySpec spec = PlainStudy("plain", trials);
  spec.memory.policy = MemoryPolicy::kStrict;
  spec.space.parameters = std::move(parameters);
  return spec;
}

Parameter BatchChoices(std::vector<ParamValue> choices) {
  return {.name = "batch",
          .domain = CategoricalDomain{std::move(choices)},
          .when = {},
          .default_value = {}};
}

class BlockedStudyTest : public SchedulerFixture {
 protected:
  std::unique_ptr<sampler::Sampler> MakeStudySampler(const StudySpec& spec) override {
    return sampler::MakeSampler(spec);
  }

  TrialState MeetOom(const Assignment& given) {
    return Finish(given.lease, OutOfMemory{.limit = given.task.limit}).state;
  }
  // `use` 0: nobody measured it.
  void RunWith(const Assignment& given, Bytes use) {
    FinishRequest request{.lease = given.lease,
                          .outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""},
                          .memory = {.live_peak = use, .limit = given.task.limit}};
    ASSERT_TRUE(scheduler_->results().FinishTrial("", request).ok());
  }
};

// ---- Errors that no parameter explains ----

TEST_F(BlockedStudyTest, OneOomInASpaceOfRealNumbersIsRetriedThenCounted) {
  for (const std::string name : {"early", "late"}) {
    StudySpec spec = StudyOver({RealNumber("lr"), RealNumber("wd")});
    spec.name = name;
    AddStudy(spec);
    WorkerFacts facts = MakeWorker(name);
    facts.serves = {name};
    const std::string session = Register(facts);
    const int64_t fails = name == "early" ? 0 : 2;
    int attempts = 0;
    while (!Status(name).finished) {
      const Assignment given = MustAcquire(session, kWholeCard);
      ASSERT_FALSE(given.lease.trial.study.empty());
      if (given.lease.trial.number.value != fails) {
        RunWith(given, MiB(20));
        continue;
      }
      EXPECT_EQ(MeetOom(given), ++attempts == 1 ? TrialState::kQueued : TrialState::kPruned);
    }
    EXPECT_EQ(attempts, 2);
    EXPECT_EQ(Status(name).counts.completed, 5);
    EXPECT_EQ(PruneReasonOf(*Load(name, fails).trial.outcome), PruneReason::kOutOfMemory);
  }
}

TEST_F(BlockedStudyTest, AnOomOfOneAttemptCostsNothing) {
  AddStudy(StudyOver({RealNumber("lr")}, 1));
  const std::string session = Register(MakeWorker("a"));
  EXPECT_EQ(MeetOom(MustAcquire(session)), TrialState::kQueued);
  RunWith(MustAcquire(session), MiB(20));
  EXPECT_EQ(Status("plain").counts.completed, 1);
}

TEST_F(BlockedStudyTest, WhereALargerOneRanAnOomIsNoise) {
  // Also where nobody has measured what ran.
  for (const Bytes use : {MiB(20), Bytes{}}) {
    StudySpec spec = StudyOver({BatchChoices({int64_t{8}, int64_t{16}}), RealNumber("lr")}, 20);
    spec.name = use.count > 0 ? "measured" : "unmeasured";
    AddStudy(spec);
    WorkerFacts facts = MakeWorker(spec.name);
    facts.serves = {spec.name};
    const std::string session = Register(facts);
    const auto enqueue = [&](int64_t batch) {
      ASSERT_TRUE(
          scheduler_->enqueuer().EnqueueTrial(spec.name, {.params = {{"batch", batch}}}, "").ok());
    };
    enqueue(16);
    RunWith(MustAcquire(session), use);
    enqueue(8);
    EXPECT_EQ(MeetOom(MustAcquire(session)), TrialState::kQueued);
    EXPECT_EQ(MeetOom(MustAcquire(session)), TrialState::kPruned);
    // Nothing is ruled out.
    for (const int64_t batch : {8, 16}) {
      enqueue(batch);
      const Assignment given = MustAcquire(session);
      EXPECT_EQ(FindInt(given.task.params, "batch"), batch);
      RunWith(given, use);
    }
  }
}

TEST_F(BlockedStudyTest, WhereErrorsRuleNothingOutNoneIsRetried) {
  StudySpec spec = StudyOver({RealNumber("lr")});
  spec.memory.policy = MemoryPolicy::kOff;
  AddStudy(spec);
  EXPECT_EQ(MeetOom(MustAcquire(Register(MakeWorker("a")))), TrialState::kPruned);
}

TEST_F(BlockedStudyTest, AnOomThatParametersExplainIsNotRetried) {
  AddStudy(StudyOver({BatchChoices({int64_t{8}, int64_t{16}})}));
  EXPECT_EQ(MeetOom(MustAcquire(Register(MakeWorker("a")))), TrialState::kPruned);
}

TEST_F(BlockedStudyTest, AFewErrorsDoNotGiveASpaceUp) {
  AddStudy(StudyOver({BatchChoices({int64_t{8}, int64_t{16}}), RealNumber("lr")}, 100));
  const std::string session = Register(MakeWorker("a"));
  int num_trials = 0;
  AcquireResult next = Acquire(session);
  for (; next.assignment && num_trials < 20; next = Acquire(session)) {
    ++num_trials;
    MeetOom(*next.assignment);
  }
  EXPECT_GE(num_trials, 3) << "one error is no reason";
  EXPECT_LT(num_trials, 20) << "but nothing fits";
  EXPECT_TRUE(next.blocked);
  EXPECT_THAT(next.waiting_for,
              AllOf(StartsWith("study plain: no configuration found that fits a capacity of"),
                    HasSubstr("give its trials more memory (--memory-limit; in Python memory=)")));
  EXPECT_TRUE(Status("plain").blocked);
  EXPECT_THAT(Status("plain").waiting_for, StartsWith("no configuration found that fits"));
}

TEST_F(BlockedStudyTest, ASpaceOfWhichTheFirstTrialFailedGoesOn) {
  StudySpec spec = StudyOver({BatchChoices({std::string("adam"), std::string("sgd")})}, 8);
  spec.name = "choices";
  AddStudy(spec);
  WorkerFacts facts = MakeWorker("a");
  facts.serves = {"choices"};
  const std::string session = Register(facts);
  std::map<std::string, int> errors;
  while (!Status("choices").finished) {
    const AcquireResult acquired = Acquire(session);
    if (!acquired.assignment.has_value()) break;
    const Assignment& given = *acquired.assignment;
    // Each choice meets one error, the first time that it runs.
    if (errors[*FindString(given.task.params, "batch")]++ == 0) {
      MeetOom(given);
    } else {
      RunWith(given, GiB(1));
    }
  }
  EXPECT_EQ(Status("choices").counts.completed, 1) << "one choice, when it was tried once more";
}

// ---- Blocked ----

TEST_F(BlockedStudyTest, AWorkerWithoutAModelIsBlockedAndToldWhy) {
  AddStudy(BertStudy());
  WorkerFacts facts = MakeBertWorker("a");
  facts.models.front().name = "other";
  facts.left_out = {{"tiny", "config.json: model_type: missing"}};
  const AcquireResult none = Acquire(Register(facts));
  EXPECT_TRUE(none.blocked);
  EXPECT_THAT(none.waiting_for,
              AllOf(HasSubstr("has no usable model of tiny, absent; tiny: config.json: model_type: "
                              "missing; put config.json"),
                    HasSubstr("hpo-worker --models DIR")));
  EXPECT_TRUE(Status("bert").blocked);
  EXPECT_EQ(Status("bert").waiting_for,
            none.waiting_for.substr(std::string("study bert: ").size()));
}

TEST_F(BlockedStudyTest, WhyAModelCannotBeUsed) {
  StudySpec spec = BertStudy();
  spec.trainer.model_init = "pretrained";
  AddStudy(spec);
  WorkerFacts facts = MakeBertWorker("a");
  EXPECT_THAT(Acquire(Register(facts)).waiting_for,
              HasSubstr("tiny: it has no model.safetensors; put config.json, model.safetensors"));
  facts.models.front() = {.name = "tiny", .shape = {.family = "t5"}, .has_weights = true};
  EXPECT_THAT(Acquire(Register(facts)).waiting_for,
              AllOf(HasSubstr("tiny: "), HasSubstr("'t5'"), HasSubstr("--trainer")));
  facts = MakeBertWorker("a");
  facts.data_sets.pop_back();
  EXPECT_THAT(Acquire(Register(facts)).waiting_for, HasSubstr("has no data file valid.jsonl"));
  facts.left_out = {{"valid.jsonl", "line 3: expected an object"}};
  const AcquireResult broken = Acquire(Register(facts));
  EXPECT_THAT(broken.waiting_for,
              HasSubstr("cannot read data file valid.jsonl: line 3: expected an object"));
  EXPECT_TRUE(broken.blocked);
  facts.reads_again = true;
  EXPECT_FALSE(Acquire(Register(facts)).blocked) << "it may pass";
}

TEST_F(BlockedStudyTest, NobodyIsBlockedWhileAnotherMayChangeIt) {
  AddStudy(BertStudy());
  WorkerFacts facts = MakeBertWorker("a");
  facts.models.clear();
  const std::string able = Register(MakeBertWorker("able"));
  const std::string unable = Register(facts);
  EXPECT_FALSE(Acquire(unable).blocked) << "the other one has not asked";
  const Assignment running = MustAcquire(able);
  EXPECT_FALSE(Acquire(unable).blocked) << "a trial runs";
  Complete(running.lease, 0.5);
  EXPECT_FALSE(Acquire(unable).blocked) << "the other one will ask again";
  EXPECT_TRUE(scheduler_->sessions().Heartbeat(able, {}, kWholeCard, "", Goodbye::kLeaving).ok());
  EXPECT_TRUE(Acquire(unable).blocked);
  const std::string again = Register(MakeBertWorker("able"));
  EXPECT_FALSE(Acquire(unable).blocked);
  EXPECT_TRUE(scheduler_->sessions().Heartbeat(again, {}, kWholeCard, "", Goodbye::kLeaving).ok());
  ASSERT_TRUE(
      scheduler_->sessions().Heartbeat(unable, {}, kWholeCard, "takes no trials: disk full").ok());
  EXPECT_FALSE(Acquire(unable).blocked) << "its machine may recover";
}

TEST_F(BlockedStudyTest, TheLastToAskTellsAll) {
  AddStudy(BertStudy());
  WorkerFacts facts = MakeBertWorker("a");
  facts.models.clear();
  const std::string a = Register(facts);
  facts.worker = "b";
  facts.instance_key = "b-1";
  const std::string b = Register(facts);
  EXPECT_FALSE(Acquire(a).blocked);
  EXPECT_TRUE(Acquire(b).blocked);
  EXPECT_TRUE(Acquire(a).blocked);
}

TEST_F(BlockedStudyTest, APauseIsNoBlock) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  ASSERT_TRUE(scheduler_->orders().OrderStudy("plain", StudyOrder::kPause, false).ok());
  const AcquireResult paused = Acquire(session);
  EXPECT_FALSE(paused.blocked);
  EXPECT_EQ(paused.waiting_for, "study plain: paused");
  EXPECT_FALSE(Status("plain").blocked);
}

TEST_F(BlockedStudyTest, AStudyThatIsNotThereBlocks) {
  WorkerFacts facts = MakeWorker("a");
  facts.serves = {"gone"};
  const AcquireResult none = Acquire(Register(facts));
  EXPECT_TRUE(none.blocked);
  EXPECT_THAT(none.waiting_for, StartsWith("the server has no study gone"));
}

TEST_F(BlockedStudyTest, ATrialThatEndsByWaitingIsNoBlock) {
  StudySpec spec = PlainStudy("plain", 1);
  AddStudy(spec);
  const std::string small = Register(MakeWorker("small", GiB(4)));
  const std::string large = Register(MakeWorker("large", GiB(16)));
  EXPECT_EQ(MeetOom(MustAcquire(small, GiB(4))), TrialState::kQueued);
  EXPECT_FALSE(Acquire(small, GiB(4)).blocked) << "the large one may take it";
  EXPECT_TRUE(scheduler_->sessions().Heartbeat(large, {}, kWholeCard, "", Goodbye::kLeaving).ok());
  const AcquireResult waits = Acquire(small, GiB(4));
  EXPECT_THAT(waits.waiting_for, HasSubstr("waits for a worker with more than"));
  EXPECT_FALSE(waits.blocked) << "its error ends it after two lease times";
  Pass(2 * kTtl + absl::Seconds(10), {{small, GiB(4)}});
  EXPECT_TRUE(Status("plain").finished);
}

}  // namespace
}  // namespace hpo::server
