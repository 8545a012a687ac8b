// A worker that was told which studies it serves gets trials of no other.
#include <gmock/gmock.h>

#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::HasSubstr;

class ServedStudiesTest : public SchedulerFixture {
 protected:
  static WorkerFacts Serving(const std::string& name, std::vector<std::string> studies) {
    WorkerFacts facts = MakeWorker(name);
    facts.serves = std::move(studies);
    return facts;
  }
};

TEST_F(ServedStudiesTest, AWorkerGetsTrialsOfItsStudyAlone) {
  AddStudy(PlainStudy("first", 2));
  AddStudy(PlainStudy("second", 2));
  const std::string session = Register(Serving("a", {"second"}));
  for (int i = 0; i < 2; ++i) {
    const LeaseRef lease = MustAcquire(session).lease;
    EXPECT_EQ(lease.trial.study, "second");
    Complete(lease, 0.5);
  }
  const AcquireResult over = Acquire(session);
  EXPECT_FALSE(over.assignment.has_value());
  EXPECT_TRUE(over.all_studies_finished) << "its own are; the other one is none of its business";
  EXPECT_THAT(over.waiting_for, HasSubstr("worker a serves second only (--study)"));
  EXPECT_EQ(Status("first").counts.running, 0);
  EXPECT_TRUE(Status("first").workers.empty());
}

TEST_F(ServedStudiesTest, AWorkerThatWasNotToldWaitsAndSaysWhy) {
  AddStudy(PlainStudy("first"));
  AddStudy(PlainStudy("second"));
  const AcquireResult waits = Acquire(Register(Serving("a", {})));
  EXPECT_FALSE(waits.assignment.has_value());
  EXPECT_FALSE(waits.all_studies_finished);
  EXPECT_THAT(waits.waiting_for, HasSubstr("say which it serves with --study NAME"));
  EXPECT_THAT(Status("first").waiting_for, HasSubstr("--study NAME"));
}

TEST_F(ServedStudiesTest, AStudyWithAProgramIsNotGivenToHpoTrainer) {
  StudySpec spec = PlainStudy("mine", 2);
  spec.trainer.task = "custom";
  spec.trainer.command = {"run", "{train.batch_size}"};
  AddStudy(spec);
  EXPECT_EQ(Status("mine").waiting_for,
            "no worker is connected; run: hpo-worker --study mine --allow-commands --gpu 0 (or: "
            "hpo-worker --study mine --allow-commands --device cpu --memory-limit 2GiB)");
  const std::string ours = Register(MakeBertWorker("ours"));
  const AcquireResult waits = Acquire(ours);
  EXPECT_FALSE(waits.assignment.has_value());
  EXPECT_FALSE(waits.all_studies_finished);
  EXPECT_TRUE(waits.blocked);
  EXPECT_THAT(waits.waiting_for, HasSubstr("hpo-worker --study mine --allow-commands"));
  EXPECT_THAT(Status("mine").waiting_for, HasSubstr("hpo-worker --study mine --allow-commands"));
  EXPECT_TRUE(Status("mine").blocked);
  AddStudy(PlainStudy("other", 1));
  EXPECT_EQ(MustAcquire(ours).lease.trial.study, "other");
  EXPECT_EQ(MustAcquire(Register(MakeWorker("commands"))).lease.trial.study, "mine");
}

TEST_F(ServedStudiesTest, ATaskOfOnesOwnIsNotGivenToHpoTrainer) {
  StudySpec spec = PlainStudy("mine", 2);
  spec.trainer.task = "custom";
  AddStudy(spec);
  EXPECT_THAT(Status("mine").waiting_for,
              HasSubstr("run: hpo-worker --study mine --trainer \"COMMAND\" --gpu 0 (or: "));
  const AcquireResult waits = Acquire(Register(MakeBertWorker("ours")));
  EXPECT_FALSE(waits.assignment.has_value());
  EXPECT_THAT(waits.waiting_for, HasSubstr("has the task custom, which hpo-trainer"));
  EXPECT_THAT(waits.waiting_for, HasSubstr("hpo-worker --study mine --trainer \"COMMAND\""));
}

TEST_F(ServedStudiesTest, AWorkerOfBeforeServesAll) {
  AddStudy(PlainStudy("first", 1));
  AddStudy(PlainStudy("second", 1));
  const std::string session = Register(MakeWorker("a"));
  MustAcquire(session);
  MustAcquire(session);
}

TEST_F(ServedStudiesTest, TheDataOfAnotherStudyAreNoObstacle) {
  AddStudy(BertStudy("first"));
  MustAcquire(Register(MakeBertWorker("a")));
  AddStudy(PlainStudy("second"));
  WorkerFacts other = MakeBertWorker("b");
  other.data_sets.front().digest = "another";
  EXPECT_FALSE(scheduler_->sessions().RegisterWorker(other).ok());
  other.serves = {"second"};
  EXPECT_EQ(MustAcquire(Register(other)).lease.trial.study, "second");
}

}  // namespace
}  // namespace hpo::server
