// Workers whose process has ended, or whose connection has closed: what they held goes on at once.
#include <sys/types.h>
#include <sys/wait.h>

#include <csignal>

#include "common/files/spawn.h"
#include "common/protocol/process_identity.h"
#include "gmock/gmock.h"
#include "server/api/study_api.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

// A process that waits to be killed, as the server would be told of it.
class WaitingProcess {
 public:
  WaitingProcess() {
    // Not a fork of this one: it would hold the lock of the database.
    pid_ = Spawn({.argv = {"/bin/sleep", "1000"}, .signal_of_parents_death = SIGKILL}).value();
    identity_ = OwnProcess();
    identity_.pid = pid_;
    // Counted up from ours to its own.
    while (HasEnded(identity_, OwnProcess())) ++identity_.start_ticks;
  }
  ~WaitingProcess() { Kill(); }
  void Kill() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  const ProcessIdentity& identity() const { return identity_; }

 private:
  pid_t pid_ = 0;
  ProcessIdentity identity_;
};

class LostWorkerTest : public SchedulerFixture {
 protected:
  static WorkerFacts WorkerOf(const std::string& name, const ProcessIdentity& process) {
    WorkerFacts facts = MakeWorker(name);
    facts.process = process;
    return facts;
  }
  void Tick() { ASSERT_TRUE(scheduler_->sweeper().Tick().ok()); }
  void Advance(absl::Duration time) {
    clock_.Advance(time);
    Tick();
  }
  TrialState StateOf(int64_t number) { return Load("plain", number).trial.state; }
  Attempt FirstAttempt(int64_t number) { return Load("plain", number).trial.attempts.front(); }
  void Say(const std::string& session, const std::vector<LeaseBeat>& beats, Goodbye goodbye) {
    ASSERT_TRUE(scheduler_->sessions().Heartbeat(session, beats, GiB(8), "", goodbye).ok());
  }
  WorkerRegistry& workers() { return scheduler_->state().workers; }

  const absl::Duration grace_ = AttendanceGrace({.ttl = kTtl});
};

TEST_F(LostWorkerTest, TheTrialOfAProcessThatHasEndedIsQueuedAtTheNextTick) {
  AddStudy(PlainStudy());
  WaitingProcess process;
  const std::string session = Register(WorkerOf("a", process.identity()));
  const LeaseRef lease = MustAcquire(session).lease;
  Tick();
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
  process.Kill();
  Tick();
  EXPECT_EQ(StateOf(0), TrialState::kQueued);
  EXPECT_EQ(Load("plain", 0).retries, RetryCounts{.worker_losses = 1});
  EXPECT_EQ(FirstAttempt(0).state, AttemptState::kLost);
  EXPECT_EQ(FirstAttempt(0).end_note, "the worker's process has ended: worker lost, retry 1 of 3");
  EXPECT_EQ(Beat(lease), Directive::kLeaseLost);
  EXPECT_FALSE(Status("plain").workers[0].alive);
  EXPECT_TRUE(Register(MakeWorker("a")) != session) << "the name is free";
}

TEST_F(LostWorkerTest, WhatTheProgramOfALostWorkerPrintedLastIsKept) {
  AddStudy(PlainStudy());
  WaitingProcess process;
  const std::string session = Register(WorkerOf("a", process.identity()));
  const LeaseRef lease = MustAcquire(session).lease;
  const StudyApi api(*scheduler_);
  const auto log_tail = [&] {
    return api.queries().GetTrial("plain", TrialNumber{0})->trial.attempts.at(0).log_tail;
  };
  Say(session, {{.lease = lease, .log_tail = "epoch 1\n"}}, Goodbye::kNone);
  EXPECT_EQ(log_tail(), "epoch 1\n") << "while it runs";
  EXPECT_EQ(FirstAttempt(0).log_tail, "") << "nothing is stored until it ends";
  process.Kill();
  Tick();
  EXPECT_EQ(StateOf(0), TrialState::kQueued);
  EXPECT_EQ(log_tail(), "epoch 1\n");
  Restart();
  EXPECT_EQ(StudyApi(*scheduler_)
                .queries()
                .GetTrial("plain", TrialNumber{0})
                ->trial.attempts.at(0)
                .log_tail,
            "epoch 1\n");
}

TEST_F(LostWorkerTest, WhatAWorkerSaysAtTheEndBeatsItsLastHeartbeat) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef finished = MustAcquire(session).lease;
  Say(session, {{.lease = finished, .log_tail = "epoch 1\n"}}, Goodbye::kNone);
  FinishRequest request{.lease = finished,
                        .outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""}};
  request.log_tail = "epoch 2\n";
  ASSERT_TRUE(scheduler_->results().FinishTrial("id", request).ok());
  const LeaseRef released = MustAcquire(session).lease;
  Say(session, {{.lease = released, .log_tail = "epoch 3\n"}}, Goodbye::kNone);
  ASSERT_TRUE(scheduler_->results().ReleaseTrial("", {.lease = released}).ok());
  const StudyApi api(*scheduler_);
  const std::pair<int64_t, std::string> cases[] = {{0, "epoch 2\n"}, {1, "epoch 3\n"}};
  for (const auto& [number, expected] : cases) {
    const auto view = api.queries().GetTrial("plain", TrialNumber{number});
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_EQ(view->trial.attempts.at(0).log_tail, expected);
  }
  const auto listed = api.queries().ListTrials("plain", {});
  ASSERT_TRUE(listed.ok()) << listed.status();
  for (const Trial& trial : listed->trials) {
    for (const Attempt& attempt : trial.attempts) EXPECT_EQ(attempt.log_tail, "");
  }
}

// As a search that is killed in the same trial, and started again each time under a new name.
TEST_F(LostWorkerTest, ATrialOutlivesThreeProcessesOfOneMachine) {
  AddStudy(PlainStudy());
  for (const char* name : {"first", "second", "third", "fourth"}) {
    WaitingProcess process;
    EXPECT_EQ(MustAcquire(Register(WorkerOf(name, process.identity()))).lease.trial.number,
              TrialNumber{0});
    process.Kill();
    Tick();
  }
  EXPECT_EQ(StateOf(0), TrialState::kFailed) << "not for ever";
}

TEST_F(LostWorkerTest, ARestartedServerStillSeesWhoHasEnded) {
  AddStudy(PlainStudy());
  WaitingProcess living;
  WaitingProcess dying;
  MustAcquire(Register(WorkerOf("a", living.identity())));
  MustAcquire(Register(WorkerOf("b", dying.identity())));
  Stop();
  dying.Kill();
  Start();
  Tick();
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
  EXPECT_EQ(StateOf(1), TrialState::kQueued);
}

// Of a copy of this machine, or of a machine with the same names for other things.
TEST_F(LostWorkerTest, AProcessThatSpeaksIsNotTakenForDead) {
  AddStudy(PlainStudy());
  ProcessIdentity elsewhere = OwnProcess();
  elsewhere.start_ticks -= 1;
  MustAcquire(Register(WorkerOf("a", elsewhere)));
  Tick();
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
}

TEST_F(LostWorkerTest, AClosedConnectionCostsTheLeaseOnceItStaysAway) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  ASSERT_TRUE(workers().Attend(session).ok());
  Advance(grace_ + absl::Seconds(1));
  EXPECT_EQ(StateOf(0), TrialState::kRunning) << "it is open";
  workers().StopAttending(session);
  Advance(grace_);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
  Advance(absl::Seconds(1));
  EXPECT_EQ(StateOf(0), TrialState::kQueued);
  EXPECT_EQ(FirstAttempt(0).end_note,
            "the worker's connection has closed: worker lost, retry 1 of 3");
  EXPECT_FALSE(Status("plain").workers[0].alive);
  EXPECT_EQ(Beat(lease), Directive::kLeaseLost);
}

// As after a tunnel was made again.
TEST_F(LostWorkerTest, AClientThatComesBackHasLostNothing) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  ASSERT_TRUE(workers().Attend(session).ok());
  workers().StopAttending(session);
  Advance(grace_ - absl::Seconds(1));
  ASSERT_TRUE(workers().Attend(session).ok());
  Advance(2 * grace_);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
  EXPECT_EQ(Beat(lease), Directive::kContinue);
}

TEST_F(LostWorkerTest, AClientThatBeatsWithoutAStreamKeepsItsLease) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  ASSERT_TRUE(workers().Attend(session).ok());
  workers().StopAttending(session);
  for (int i = 0; i < 6; ++i) {
    Advance(HeartbeatInterval({.ttl = kTtl}));
    Say(session, {{.lease = lease}}, Goodbye::kNone);
  }
  Advance(grace_);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
}

TEST_F(LostWorkerTest, AnOlderClientThatNeverAttendsHasItsTtls) {
  AddStudy(PlainStudy());
  MustAcquire(Register(MakeWorker("a")));
  Advance(2 * kTtl);
  EXPECT_EQ(StateOf(0), TrialState::kRunning);
  Advance(absl::Seconds(1));
  EXPECT_EQ(StateOf(0), TrialState::kQueued);
}

TEST_F(LostWorkerTest, OnlyAKnownSessionMayAttend) {
  EXPECT_TRUE(absl::IsNotFound(workers().Attend("unknown")));
  workers().StopAttending("unknown");
}

// What hpo.minimize does that resumes a folder whose owner is dead: it knows by the folder's lock.
TEST_F(LostWorkerTest, AnotherProcessSaysGoodbyeForADeadOneAfterARestart) {
  AddStudy(PlainStudy());
  MustAcquire(Register(MakeWorker("dead")));
  MustAcquire(Register(MakeWorker("dead")));
  const LeaseRef other = MustAcquire(Register(MakeWorker("living"))).lease;
  Restart();
  Say(Register({.worker = "dead", .instance_key = "dead-1"}), {}, Goodbye::kDied);
  EXPECT_EQ(StateOf(0), TrialState::kQueued);
  EXPECT_EQ(StateOf(1), TrialState::kQueued);
  EXPECT_EQ(Load("plain", 0).retries, RetryCounts{.worker_losses = 1});
  EXPECT_EQ(StateOf(2), TrialState::kRunning);
  EXPECT_EQ(Beat(other), Directive::kContinue);
  EXPECT_EQ(MustAcquire(Register(MakeWorker("new"))).lease.trial.number, TrialNumber{0});
}

TEST_F(LostWorkerTest, AGoodbyeOfItsOwnAfterARestartCostsNoRetry) {
  AddStudy(PlainStudy());
  MustAcquire(Register(MakeWorker("a")));
  Restart();
  Say(Register(MakeWorker("a")), {}, Goodbye::kLeaving);
  EXPECT_EQ(StateOf(0), TrialState::kQueued);
  EXPECT_EQ(Load("plain", 0).retries, RetryCounts{});
}

}  // namespace
}  // namespace hpo::server
