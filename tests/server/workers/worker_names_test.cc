#include "server/workers/worker_names.h"

#include "spdlog/spdlog.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

NamedProcess Process(const std::string& key, const std::string& predecessor = "") {
  return {.name = "a", .instance_key = key, .predecessor = predecessor};
}

absl::Duration At(int64_t seconds) { return absl::Seconds(1000 + seconds); }

TEST(WorkerNames, AFreeNameIsGivenAtOnceAndKept) {
  WorkerNames names(kPatience);
  EXPECT_EQ(*names.Claim(Process("1"), At(0)), NameGrant::kFree);
  EXPECT_EQ(*names.Claim(Process("1"), At(500)), NameGrant::kFree) << "registers again";
}

TEST(WorkerNames, ANewcomerIsRefusedOnceTheHolderHasBeaten) {
  WorkerNames names(kPatience);
  ASSERT_TRUE(names.Claim(Process("1"), At(0)).ok());
  EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("2"), At(3)).status()));
  names.Beat(Process("1"), At(10));
  EXPECT_TRUE(absl::IsAlreadyExists(names.Claim(Process("2"), At(11)).status()));
  EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("2"), At(12)).status())) << "it began again";
}

TEST(WorkerNames, ANewcomerTakesTheNameOfASilentHolder) {
  WorkerNames names(kPatience);
  ASSERT_TRUE(names.Claim(Process("1"), At(0)).ok());
  EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("2"), At(100)).status()));
  EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("2"), At(120)).status()));
  const absl::Status waits = names.Claim(Process("2"), At(119) + absl::Milliseconds(750)).status();
  EXPECT_NE(waits.message().find("silent for 1s more"), std::string::npos) << waits;
  EXPECT_EQ(*names.Claim(Process("2"), At(121)), NameGrant::kTakenOver);
  EXPECT_EQ(*names.Claim(Process("2"), At(122)), NameGrant::kTakenOver) << "tells it again";
  names.Beat(Process("1"), At(123));
  EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("1"), At(123)).status()));
  names.Beat(Process("2"), At(125));
  EXPECT_TRUE(absl::IsAlreadyExists(names.Claim(Process("1"), At(126)).status()));
}

TEST(WorkerNames, TwoNewcomersDoNotDisturbOneAnother) {
  WorkerNames names(kPatience);
  ASSERT_TRUE(names.Claim(Process("1"), At(0)).ok());
  for (int second = 0; second <= 20; second += 5) {
    EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("2"), At(second)).status()));
    EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("3"), At(second)).status()));
  }
  EXPECT_TRUE(names.Claim(Process("3"), At(21)).ok());
  EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("2"), At(21)).status()));
}

TEST(WorkerNames, ASuccessorDoesNotWait) {
  WorkerNames names(kPatience);
  ASSERT_TRUE(names.Claim(Process("1"), At(0)).ok());
  EXPECT_EQ(*names.Claim(Process("2", "1"), At(1)), NameGrant::kSuccessor);
  // A copy of the state folder gives no more than that.
  EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("3", "1"), At(2)).status()));
  EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("1", "0"), At(2)).status()));
}

TEST(WorkerNames, AGoodbyeOfTheHolderAloneFreesTheName) {
  WorkerNames names(kPatience);
  ASSERT_TRUE(names.Claim(Process("1"), At(0)).ok());
  names.Free(Process("2"));
  EXPECT_TRUE(absl::IsUnavailable(names.Claim(Process("2"), At(1)).status()));
  names.Free(Process("1"));
  EXPECT_EQ(*names.Claim(Process("2"), At(2)), NameGrant::kFree);
}

// ---- What it means to trials ----

class SameNameTest : public SchedulerFixture {
 protected:
  static WorkerFacts Worker(const std::string& key) {
    WorkerFacts facts = MakeWorker("a");
    facts.instance_key = key;
    return facts;
  }
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    SchedulerFixture::SetUp();
  }
  absl::Status TryRegister(const WorkerFacts& facts) {
    return scheduler_->sessions().RegisterWorker(facts).status();
  }
  void Alive(const std::string& session) {
    ASSERT_TRUE(scheduler_->sessions().Heartbeat(session, {}, GiB(8)).ok());
  }
  const absl::Duration kBeat = HeartbeatInterval({.ttl = kTtl});
};

TEST_F(SameNameTest, TheNewcomerIsToldAndTheTrialGoesOn) {
  AddStudy(PlainStudy());
  const std::string session = Register(Worker("1"));
  const LeaseRef lease = MustAcquire(session).lease;
  EXPECT_TRUE(absl::IsUnavailable(TryRegister(Worker("2"))));
  clock_.Advance(kBeat);
  Alive(session);
  clock_.Advance(absl::Seconds(1));
  const absl::Status refused = TryRegister(Worker("2"));
  EXPECT_TRUE(absl::IsAlreadyExists(refused));
  EXPECT_NE(refused.message().find("--name"), absl::string_view::npos);
  EXPECT_EQ(Beat(lease), Directive::kContinue);
  EXPECT_TRUE(Complete(lease, 0.5).stored);
  ASSERT_EQ(Status("plain").workers.size(), 1u);
  EXPECT_NE(Status("plain").workers[0].notice.find("refused, 1 so far"), std::string::npos);
}

TEST_F(SameNameTest, ATakeoverCostsTheTrialNoRetryAndIsNoEvidenceAgainstIt) {
  AddStudy(PlainStudy());
  const LeaseRef lost = MustAcquire(Register(Worker("1"))).lease;
  EXPECT_TRUE(absl::IsUnavailable(TryRegister(Worker("2"))));
  clock_.Advance(2 * kBeat + absl::Seconds(1));
  const std::string session = Register(Worker("2"));
  EXPECT_EQ(Beat(lost), Directive::kLeaseLost);
  const TrialRecord record = Load("plain", 0);
  EXPECT_EQ(record.trial.state, TrialState::kQueued);
  EXPECT_EQ(record.retries, RetryCounts{.takeovers = 1});
  EXPECT_EQ(record.trial.attempts[0].state, AttemptState::kReleased);
  EXPECT_EQ(MustAcquire(session).lease.trial, lost.trial);
  EXPECT_NE(Status("plain").workers[0].notice.find("fallen silent"), std::string::npos);
}

TEST_F(SameNameTest, AGoodbyeFreesTheNameAtOnce) {
  AddStudy(PlainStudy());
  const std::string session = Register(Worker("1"));
  ASSERT_TRUE(
      scheduler_->sessions().Heartbeat(session, {}, GiB(8), /*notice=*/"", Goodbye::kLeaving).ok());
  EXPECT_FALSE(Status("plain").workers[0].alive);
  EXPECT_TRUE(absl::IsNotFound(scheduler_->dispatcher()
                                   .AcquireTrial(session, "", absl::ZeroDuration(), GiB(8), nullptr)
                                   .status()));
  EXPECT_TRUE(TryRegister(Worker("2")).ok());
}

TEST_F(SameNameTest, AGoodbyeGivesBackWhatItDoesNotName) {
  AddStudy(PlainStudy());
  const std::string session = Register(Worker("1"));
  const LeaseRef owed = MustAcquire(session).lease;
  const LeaseRef never_heard_of = MustAcquire(session).lease;
  ASSERT_TRUE(scheduler_->sessions()
                  .Heartbeat(session, {{.lease = owed}}, GiB(8), /*notice=*/"", Goodbye::kLeaving)
                  .ok());
  EXPECT_EQ(Load("plain", 0).trial.state, TrialState::kRunning);
  const TrialRecord back = Load("plain", 1);
  EXPECT_EQ(back.trial.state, TrialState::kQueued);
  EXPECT_EQ(back.retries, RetryCounts{});
  EXPECT_EQ(back.trial.attempts[0].state, AttemptState::kReleased);
  const std::string other = Register(MakeWorker("b"));
  EXPECT_EQ(MustAcquire(other).lease.trial.number, never_heard_of.trial.number);
  EXPECT_TRUE(Complete(owed, 0.5).stored);
}

TEST_F(SameNameTest, AProcessThatRunsATrialKeepsItsNameWhenTheServerRestarts) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(Worker("1"))).lease;
  Restart();
  EXPECT_TRUE(absl::IsUnavailable(TryRegister(Worker("2"))));
  EXPECT_EQ(Beat(lease), Directive::kContinue);
  EXPECT_TRUE(TryRegister(Worker("1")).ok());
  clock_.Advance(absl::Seconds(1));
  const std::string session = Register(Worker("1"));
  Alive(session);
  EXPECT_TRUE(absl::IsAlreadyExists(TryRegister(Worker("2"))));
  EXPECT_TRUE(Complete(lease, 0.5).stored);
}

// `same_name_failed` of issue 21: somebody starts a second worker of the name again and again.
TEST_F(SameNameTest, AThousandTrialsAllComplete) {
  constexpr int kTrials = 1000;
  AddStudy(EndlessStudy("plain", kTrials));
  const std::string session = Register(Worker("1"));
  int num_refused = 0;
  int newcomer = 2;
  for (int trial = 0; trial < kTrials; ++trial) {
    const LeaseRef lease = MustAcquire(session).lease;
    for (int second = 0; second < 12; second += 3) {
      const absl::Status asked = TryRegister(Worker(absl::StrCat(newcomer)));
      ASSERT_FALSE(asked.ok());
      if (absl::IsAlreadyExists(asked)) {
        ++num_refused;
        ++newcomer;
      }
      clock_.Advance(absl::Seconds(3));
    }
    ASSERT_EQ(Beat(lease), Directive::kContinue);
    Alive(session);
    Complete(lease, 0.5);
  }
  const TrialCounts counts = Status("plain").counts;
  EXPECT_EQ(counts.failed, 0);
  EXPECT_EQ(counts.completed, kTrials);
  EXPECT_GT(num_refused, kTrials / 2);
}

}  // namespace
}  // namespace hpo::server
