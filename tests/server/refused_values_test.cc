// Values that no worker sends: refused before anything is stored, so that what is stored can be
// read. From a report of a database that no server opened again.
#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/random.h"
#include "server/storage/sqlite/database.h"
#include "tests/fakes/random_message.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::server {
namespace {

using testing::HasSubstr;

class RefusedValuesTest : public CoordinatorFixture {
 protected:
  void SetUp() override {
    CoordinatorFixture::SetUp();
    ASSERT_TRUE(Create(kPlainStudy).ok());
    session_ = Register();
  }

  v1::Assignment Take() {
    return Acquire(session_, "take" + std::to_string(++num_taken_)).assignment();
  }

  void GiveBack(const v1::Assignment& assignment) {
    Call call;
    v1::ReleaseTrialRequest request;
    request.set_study(assignment.study());
    request.set_trial(assignment.trial());
    request.set_attempt(assignment.attempt());
    request.set_lease_token(assignment.lease_token());
    request.set_reason(v1::RELEASE_REASON_PREEMPTED);
    v1::ReleaseTrialResponse response;
    const grpc::Status status = workers_->ReleaseTrial(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  grpc::Status TellFinish(const v1::FinishTrialRequest& request) {
    Call call;
    v1::FinishTrialResponse response;
    return workers_->FinishTrial(&call, request, &response);
  }

  grpc::Status GetTrial(int64_t number) {
    Call call;
    v1::GetTrialRequest request;
    request.set_study("plain");
    request.set_number(number);
    v1::GetTrialResponse response;
    return studies_->GetTrial(&call, request, &response);
  }

  std::string session_;
  int num_taken_ = 0;
};

v1::Outcome ScoreOf(double score) {
  v1::Outcome outcome;
  (*outcome.mutable_completed()->mutable_metrics())["score"] = score;
  return outcome;
}

TEST_F(RefusedValuesTest, ALateResultWithASizeBelowZeroDoesNotBreakTheDatabase) {
  const v1::Assignment first = Take();
  GiveBack(first);
  const v1::Assignment second = Take();
  ASSERT_EQ(second.trial(), first.trial());
  Finish(second, ScoreOf(0.6));

  v1::FinishTrialRequest memory = Finishing(first, ScoreOf(0.1));
  memory.mutable_memory()->set_live_peak_bytes(-1);
  v1::FinishTrialRequest oom = Finishing(first, ScoreOf(0.1));
  oom.mutable_outcome()->mutable_out_of_memory()->set_kind(v1::OOM_KIND_CONFIGURATION);
  oom.mutable_outcome()->mutable_out_of_memory()->set_peak_bytes(-1);
  const std::pair<v1::FinishTrialRequest, std::string> cases[] = {
      {memory, "memory.live_peak_bytes: expected 0 to 9007199254740992, got -1"},
      {oom, "outcome.out_of_memory.peak_bytes: expected 0 to 9007199254740992, got -1"}};
  for (const auto& [request, message] : cases) {
    const grpc::Status status = TellFinish(request);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }
  EXPECT_TRUE(GetTrial(first.trial()).ok());
  coordinator_.reset();
  Start();
  EXPECT_TRUE(GetTrial(first.trial()).ok());
}

TEST_F(RefusedValuesTest, AnOutOfMemoryAtTheLargestNumberDoesNotOverflow) {
  const v1::Assignment trial = Take();
  v1::FinishTrialRequest request = Finishing(trial, {});
  v1::OutOfMemory& oom = *request.mutable_outcome()->mutable_out_of_memory();
  oom.set_kind(v1::OOM_KIND_CONFIGURATION);
  oom.set_limit_bytes(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(TellFinish(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(RefusedValuesTest, StepsBelowZeroAreRefusedWhereverTheyStand) {
  const v1::Assignment trial = Take();
  v1::FinishTrialRequest request = Finishing(trial, ScoreOf(0.5));
  request.add_measurements()->set_step(-1);
  const grpc::Status status = TellFinish(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("measurements[0].step"));
}

TEST_F(RefusedValuesTest, AnErrorQuotesLongTextsShortened) {
  Call call;
  v1::AcquireTrialRequest request;
  request.set_session(std::string(1 << 20, 'x'));
  v1::AcquireTrialResponse response;
  const grpc::Status status = workers_->AcquireTrial(&call, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(),
              HasSubstr("session: expected at most 200 bytes, got 1048576"));
  EXPECT_LT(status.error_message().size(), 300);
}

// Whatever is taken can be read again, by this server and by the next.
TEST_F(RefusedValuesTest, WhatIsTakenIsRead) {
  constexpr char kLong[] = R"(
name: long
objective: {metric: score, direction: maximize}
trainer: {task: custom, epochs: 1}
budget: {trials: 1000, failures_in_a_row: 0}
memory: {policy: off}
sampler: {type: random, seed: 1}
parameters: {x: {int: [1, 1000]}}
)";
  ASSERT_TRUE(Create(kLong).ok());
  Rng rng(7, 1);
  const auto choose = [&rng](uint64_t n) { return rng.Below(n); };
  RandomMessage random(choose, {"score", "replan", "a"});
  int num_taken = 0;
  int num_refused = 0;
  for (int i = 0; i < 150; ++i) {
    const v1::Assignment trial = Take();
    if (i % 2 == 0) GiveBack(trial);  // then the result comes late
    v1::FinishTrialRequest request = Finishing(trial, {});
    // Of so many fields one is out of bounds as a rule: several tries, each with fewer of them.
    for (int part = 0; part < 4; ++part) {
      v1::FinishTrialRequest noise;
      random.Fill(*noise.mutable_outcome());
      if (part < 3) random.Fill(*noise.mutable_memory());
      if (part < 2) random.Fill(*noise.add_measurements());
      if (part < 1) random.Fill(*noise.add_memory_records());
      noise.MergeFrom(request);
      noise.set_request_id(noise.request_id() + std::to_string(part));
      const grpc::Status status = TellFinish(noise);
      const bool refused = status.error_code() == grpc::StatusCode::INVALID_ARGUMENT;
      EXPECT_TRUE(status.ok() || refused) << status.error_message();
      ++(refused ? num_refused : num_taken);
      Call call;
      v1::GetTrialRequest get;
      get.set_study(trial.study());
      get.set_number(trial.trial());
      v1::GetTrialResponse got;
      EXPECT_TRUE(studies_->GetTrial(&call, get, &got).ok());
      if (status.ok()) break;
    }
  }
  EXPECT_GT(num_taken, 20);
  EXPECT_GT(num_refused, 20);
  coordinator_.reset();
  Start();
  for (const char* study : {"plain", "long"}) {
    Call call;
    v1::ListTrialsRequest list;
    list.set_study(study);
    list.set_view(v1::TRIAL_VIEW_FULL);
    list.set_page_size(1000);
    v1::ListTrialsResponse listed;
    const grpc::Status status = studies_->ListTrials(&call, list, &listed);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
}

// From a report: six failures of 4 MB, and `hpo trial list` failed for good.
TEST_F(RefusedValuesTest, LongFailuresOfAnEarlierVersionAreListed) {
  for (int i = 0; i < 4; ++i) {
    v1::Outcome outcome;
    outcome.mutable_failed()->set_failure_class(v1::FAILURE_CLASS_BAD_DATA);
    outcome.mutable_failed()->set_message("first line");
    Finish(Take(), outcome);
  }
  auto database = Database::Open(Options().database, Database::Access::kReadWrite);
  ASSERT_TRUE(database.ok()) << database.status();
  ASSERT_TRUE((*database)
                  ->Execute("UPDATE trial SET outcome = json_set(outcome, '$.message', "
                            "'first line ' || hex(zeroblob(2000000)) || ' last line')")
                  .ok());
  Call call;
  v1::ListTrialsRequest list;
  list.set_study("plain");
  v1::ListTrialsResponse listed;
  const grpc::Status status = studies_->ListTrials(&call, list, &listed);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(listed.trials_size(), 4);
  const std::string& message = listed.trials(0).outcome().failed().message();
  EXPECT_LE(message.size(), 1000);
  EXPECT_THAT(message, testing::StartsWith("first line 0000"));
  EXPECT_THAT(message, testing::EndsWith("0000 last line"));
  EXPECT_TRUE(GetTrial(0).ok());
}

TEST_F(RefusedValuesTest, AClientHasSoManyWatches) {
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchStudyResponse>>> watches;
  v1::WatchStudyRequest request;
  request.set_study("plain");
  v1::WatchStudyResponse response;
  for (int64_t i = 0; i < kWatchLimit.most; ++i) {
    calls.push_back(std::make_unique<Call>());
    watches.push_back(studies_->WatchStudy(calls.back().get(), request));
    ASSERT_TRUE(watches.back()->Read(&response));
  }
  Call refused_call;
  const auto refused = studies_->WatchStudy(&refused_call, request);
  EXPECT_FALSE(refused->Read(&response));
  const grpc::Status status = refused->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("expected at most 100 open ones"));
  for (const auto& call : calls) call->TryCancel();
  for (const auto& watch : watches) watch->Finish();
  // Closed ones make room; the server notices within its check for cancelled calls.
  bool open = false;
  const absl::Duration began = SystemClock().Monotonic();
  while (!open && SystemClock().Monotonic() - began < absl::Seconds(30)) {
    Call call;
    const auto again = studies_->WatchStudy(&call, request);
    open = again->Read(&response);
    call.TryCancel();
    again->Finish();
  }
  EXPECT_TRUE(open);
}

}  // namespace
}  // namespace hpo::server
