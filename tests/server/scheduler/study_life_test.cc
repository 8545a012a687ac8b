// Notes, tags and attributes; the target that ends a study; failed trials tried again.
#include <gmock/gmock.h>

#include "server/api/study_api.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr TrialNumber kFirst{0};

class StudyLifeTest : public SchedulerFixture {
 protected:
  StudyApi Api() { return StudyApi(*scheduler_); }

  Attributes Noted(std::optional<TrialNumber> number, const AttributeChange& change) {
    const absl::StatusOr<Attributes> noted = Api().ChangeAttributes("plain", number, change);
    EXPECT_TRUE(noted.ok()) << noted.status();
    return noted.value_or(Attributes{});
  }

  static FinishRequest Result(const LeaseRef& lease, const Attributes& attributes) {
    return {.lease = lease,
            .outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""},
            .memory = {},
            .final_plan = {},
            .measurements = {},
            .memory_records = {},
            .attributes = attributes};
  }

  // A trial that has failed for good; its number.
  TrialNumber Fail(const std::string& session, const std::string& why = "broken") {
    const LeaseRef lease = MustAcquire(session).lease;
    Finish(lease, Failed{.failure_class = FailureClass::kBadData, .message = why});
    return lease.trial.number;
  }

  absl::StatusOr<RetryResult> Retry(std::vector<TrialNumber> numbers,
                                    const std::string& request_id = "") {
    const bool all = numbers.empty();
    return Api().RetryTrials("plain", {.numbers = std::move(numbers), .all_failed = all},
                             request_id);
  }

  std::vector<int64_t> Queued(const absl::StatusOr<RetryResult>& retried) {
    EXPECT_TRUE(retried.ok()) << retried.status();
    std::vector<int64_t> numbers;
    if (!retried.ok()) return numbers;
    for (const Trial& trial : retried->trials) numbers.push_back(trial.id.number.value);
    return numbers;
  }
};

TEST_F(StudyLifeTest, WhatIsNotedOutlivesTheServerAndChangesNothingElse) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  Complete(lease, 0.5);
  const int64_t sequence = Status("plain").sequence;
  Noted(std::nullopt, {.note = "the first", .add_tags = {"paper"}, .set = {{"owner", "\"me\""}}});
  Noted(kFirst, {.note = {}, .add_tags = {"good"}, .set = {{"rows", "12"}}});
  Noted(kFirst, {.note = "look here"});
  for (int start = 0; start < 2; ++start) {
    const StudyStatus study = Status("plain");
    EXPECT_EQ(study.sequence, sequence) << "no event of the study";
    EXPECT_EQ(NoteOf(study.attributes), "the first");
    EXPECT_THAT(TagsOf(study.attributes), ElementsAre("paper"));
    EXPECT_THAT(UsersOwn(study.attributes), ElementsAre(Pair("owner", "\"me\"")));
    const Attributes trial = Api().queries().GetTrial("plain", kFirst)->trial.attributes;
    EXPECT_EQ(NoteOf(trial), "look here");
    EXPECT_EQ(Api().queries().ListTrials("plain", {})->trials[0].attributes, trial);
    Restart();
  }
}

TEST_F(StudyLifeTest, OnlyWhatThereIsCanBeNotedOf) {
  AddStudy(PlainStudy());
  EXPECT_TRUE(
      absl::IsNotFound(Api().ChangeAttributes("plain", TrialNumber{7}, {.note = "n"}).status()));
  EXPECT_TRUE(absl::IsNotFound(Api().ChangeAttributes("other", std::nullopt, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      Api().ChangeAttributes("plain", std::nullopt, {.note = {}, .set = {{"k", "{"}}}).status()));
}

TEST_F(StudyLifeTest, ATrainersAttributesComeWithReportsAndTheResult) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  Noted(kFirst, {.note = "by hand", .set = {{"rows", "1"}}});
  const AttemptReport report{.lease = lease, .attributes = {{"rows", "2"}, {"host", "\"h\""}}};
  ASSERT_TRUE(scheduler_->results().ReportMeasurements(report).ok());
  EXPECT_THAT(UsersOwn(Api().queries().GetTrial("plain", kFirst)->trial.attributes),
              ElementsAre(Pair("host", "\"h\""), Pair("rows", "2")));
  ASSERT_TRUE(scheduler_->results().FinishTrial("id", Result(lease, {{"epochs", "3"}})).ok());
  const Attributes noted = Api().queries().GetTrial("plain", kFirst)->trial.attributes;
  EXPECT_EQ(NoteOf(noted), "by hand");
  EXPECT_THAT(UsersOwn(noted),
              ElementsAre(Pair("epochs", "3"), Pair("host", "\"h\""), Pair("rows", "2")));
}

TEST_F(StudyLifeTest, AResultThatDoesNotCountNotesNothing) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef lease = MustAcquire(session).lease;
  ASSERT_TRUE(scheduler_->results().FinishTrial("id", Result(lease, {{"k", "1"}})).ok());
  ASSERT_TRUE(scheduler_->results().FinishTrial("other", Result(lease, {{"k", "2"}})).ok());
  EXPECT_THAT(UsersOwn(Api().queries().GetTrial("plain", kFirst)->trial.attributes),
              ElementsAre(Pair("k", "1")));
  EXPECT_TRUE(absl::IsAborted(scheduler_->results()
                                  .ReportMeasurements({.lease = lease, .attributes = {{"k", "3"}}})
                                  .status()));
}

TEST_F(StudyLifeTest, AStudyEndsAtItsTargetAndGoesOnWithAnother) {
  StudySpec spec = PlainStudy();
  spec.budget.target = 0.8;
  AddStudy(spec);
  std::string session = Register(MakeWorker("a"));
  Complete(MustAcquire(session).lease, 0.7);
  EXPECT_FALSE(Status("plain").finished);
  const LeaseRef running = MustAcquire(Register(MakeWorker("b"))).lease;
  const LeaseRef reaches = MustAcquire(session).lease;
  ASSERT_TRUE(Api().EnqueueTrial("plain", {}, "").ok());
  Complete(reaches, 0.8);
  const AcquireResult none = Acquire(session);
  EXPECT_FALSE(none.assignment) << "what waits is left where it is";
  EXPECT_THAT(none.waiting_for,
              MatchesRegex("study plain: ends when the trials that run have ended: trial #2 "
                           "reached the target.*; running: trial #1 on b"));
  EXPECT_FALSE(Status("plain").finished) << "what runs goes on";
  EXPECT_THAT(Status("plain").waiting_for,
              StartsWith("ends when the trials that run have ended: trial #2 reached the target"));
  EXPECT_EQ(Beat(running), Directive::kContinue);
  Complete(running, 0.1);
  for (int start = 0; start < 2; ++start) {
    EXPECT_TRUE(Status("plain").finished);
    EXPECT_EQ(Status("plain").waiting_for,
              "trial #2 reached the target: score 0.8, at least 0.8; to go on: hpo study extend "
              "plain --target none");
    EXPECT_THAT(
        Api().EnqueueTrial("plain", {}, "").status().message(),
        HasSubstr("expected one that has not ended, got one that has ended: trial #2 reached"));
    Restart();
  }
  ASSERT_TRUE(Api().UpdateStudy("plain", {.target = 0.9}, "").ok());
  EXPECT_EQ(MustAcquire(Register(MakeWorker("a"))).lease.trial.number, TrialNumber{3});
  ASSERT_TRUE(Api().UpdateStudy("plain", {.remove_target = true}, "").ok());
  EXPECT_EQ(Status("plain").spec.budget.target, std::nullopt);
}

TEST_F(StudyLifeTest, AFailedTrialIsTriedAgainAsANewOne) {
  StudySpec spec = PlainStudy("plain", 2);
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a"));
  const TrialNumber failed = Fail(session);
  const Trial before = Load("plain", 0).trial;
  EXPECT_THAT(Queued(Retry({failed})), ElementsAre(1));
  const TrialRecord again = Load("plain", 1);
  EXPECT_EQ(again.trial.params, before.params);
  EXPECT_EQ(again.trial.attributes.at(kRetryOfKey), "0");
  EXPECT_TRUE(again.trial.budgeted);
  EXPECT_EQ(Load("plain", 0).trial.state, TrialState::kFailed) << "one terminal state, ever";
  const LeaseRef lease = MustAcquire(session).lease;
  EXPECT_EQ(lease.trial.number, TrialNumber{1});
  Complete(lease, 0.5);
  EXPECT_TRUE(Status("plain").finished) << "it counts, as one that is enqueued does";
}

TEST_F(StudyLifeTest, WhatWaitsRunsOrHasCompletedIsNotTriedTwice) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const TrialNumber failed = Fail(session);
  EXPECT_THAT(Queued(Retry({failed}, "one")), ElementsAre(1));
  EXPECT_THAT(Queued(Retry({failed}, "one")), ElementsAre(1)) << "the recorded answer";
  auto second = Retry({failed});
  EXPECT_THAT(Queued(second), IsEmpty());
  EXPECT_THAT(second->skipped, ElementsAre(FieldsAre(failed, "trial #1 waits to try it again")));
  const LeaseRef lease = MustAcquire(session).lease;
  EXPECT_THAT(Retry({failed})->skipped,
              ElementsAre(FieldsAre(failed, "trial #1 runs to try it again")));
  Finish(lease, Failed{.failure_class = FailureClass::kBadData, .message = "again"});
  Restart();
  EXPECT_THAT(Queued(Retry({})), ElementsAre(2)) << "one for both that failed";
  EXPECT_EQ(Load("plain", 2).trial.attributes.at(kRetryOfKey), "0");
  Complete(MustAcquire(Register(MakeWorker("a"))).lease, 0.5);
  EXPECT_THAT(Queued(Retry({})), IsEmpty());
  EXPECT_THAT(Retry({failed})->skipped,
              ElementsAre(FieldsAre(failed, "trial #2 has completed it since")));
}

TEST_F(StudyLifeTest, OnlyWhatFailedOrMemoryEndedIsTriedAgain) {
  StudySpec spec = PlainStudy();
  spec.budget.failures_in_a_row = 0;
  spec.memory.policy = MemoryPolicy::kOff;
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a"));
  Complete(MustAcquire(session).lease, 0.5);
  const LeaseRef oom = MustAcquire(session).lease;
  Finish(oom, OutOfMemory{.limit = GiB(8), .message = "too big"});
  ASSERT_EQ(Load("plain", 1).trial.state, TrialState::kPruned);
  const LeaseRef running = MustAcquire(session).lease;
  for (const TrialNumber other : {kFirst, running.trial.number}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(Retry({other}).status()));
  }
  EXPECT_THAT(Retry({kFirst}).status().message(),
              HasSubstr("#0: expected one that failed or ran out of memory, got COMPLETED"));
  EXPECT_TRUE(absl::IsNotFound(Retry({TrialNumber{99}}).status()));
  EXPECT_THAT(Queued(Retry({})), ElementsAre(3));
  EXPECT_EQ(Load("plain", 3).trial.params, Load("plain", 1).trial.params);
  EXPECT_TRUE(absl::IsInvalidArgument(Api().RetryTrials("plain", {}, "").status()));
  ASSERT_TRUE(Api().OrderStudy("plain", StudyOrder::kStop, false).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Retry({oom.trial.number}).status()));
}

}  // namespace
}  // namespace hpo::server
