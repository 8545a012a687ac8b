#include "server/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::server {
namespace {

using testing::HasSubstr;
using CoordinatorTest = CoordinatorFixture;

TEST_F(CoordinatorTest, ATrialGoesFromAskToTell) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  const std::string session = Register();
  const v1::AcquireTrialResponse acquired = Acquire(session, "a1");
  ASSERT_TRUE(acquired.has_assignment()) << acquired.waiting_for();
  const v1::Assignment& assignment = acquired.assignment();
  EXPECT_EQ(assignment.study(), "plain");
  EXPECT_EQ(assignment.train(), "train.jsonl");
  EXPECT_EQ(assignment.params().count("train.lr"), 1u);

  Call report_call;
  v1::ReportMeasurementsRequest report;
  report.set_study("plain");
  report.set_trial(assignment.trial());
  report.set_attempt(assignment.attempt());
  report.set_lease_token(assignment.lease_token());
  v1::Measurement& measurement = *report.add_measurements();
  measurement.set_step(10);
  (*measurement.mutable_metrics())["score"] = 0.4;
  v1::ReportMeasurementsResponse reported;
  ASSERT_TRUE(workers_->ReportMeasurements(&report_call, report, &reported).ok());
  EXPECT_FALSE(reported.should_stop());

  EXPECT_EQ(Complete(assignment, 0.7).state(), v1::TRIAL_STATE_COMPLETED);
  const v1::Study study = Get();
  EXPECT_EQ(study.counts().completed(), 1);
  EXPECT_EQ(study.best_value(), 0.7);

  Call get_call;
  v1::GetTrialRequest get;
  get.set_study("plain");
  v1::GetTrialResponse got;
  ASSERT_TRUE(studies_->GetTrial(&get_call, get, &got).ok());
  EXPECT_EQ(got.trial().measurements_size(), 1);
  EXPECT_EQ(got.trial().attempts_size(), 1);
  EXPECT_EQ(got.trial().value(), 0.7);
}

// Of a file that came over the wire, memory.relevant counts: a real number then explains an error.
TEST_F(CoordinatorTest, AStudyNamesTheParametersThatMemoryDependsOn) {
  for (const std::string relevant : {"", ", relevant: [width]"}) {
    const std::string name = relevant.empty() ? "rates" : "widths";
    ASSERT_TRUE(Create(absl::StrCat("name: ", name, R"(
objective: {metric: score, direction: maximize}
trainer: {task: custom, epochs: 1}
budget: {trials: 9}
memory: {policy: strict)",
                                    relevant, R"(}
sampler: {type: random, seed: 1}
parameters:
  width: {float: [0.5, 4.0]}
)"))
                    .ok());
    const v1::AcquireTrialResponse given = Acquire(Register(name), name);
    ASSERT_EQ(given.assignment().study(), name);
    v1::Outcome outcome;
    outcome.mutable_out_of_memory()->set_kind(v1::OOM_KIND_CONFIGURATION);
    EXPECT_EQ(Finish(given.assignment(), outcome).state(),
              relevant.empty() ? v1::TRIAL_STATE_QUEUED : v1::TRIAL_STATE_PRUNED);
    Call call;
    v1::OrderStudyRequest stop;
    stop.set_name(name);
    stop.set_order(v1::STUDY_ORDER_STOP);
    v1::OrderStudyResponse ignored;
    ASSERT_TRUE(studies_->OrderStudy(&call, stop, &ignored).ok());
  }
}

TEST_F(CoordinatorTest, WhoeverWaitsIsToldThatItIsBlocked) {
  Call registers;
  v1::RegisterWorkerRequest worker;
  worker.set_worker("host:cpu");
  worker.set_instance_key("1");
  worker.mutable_device()->set_kind("cpu");
  worker.mutable_serves()->add_names("deleted");
  v1::RegisterWorkerResponse registered;
  ASSERT_TRUE(workers_->RegisterWorker(&registers, worker, &registered).ok());
  Call call;  // shorter than the wait
  v1::AcquireTrialRequest request;
  request.set_session(registered.session());
  request.set_request_id("acquire");
  request.mutable_wait()->set_seconds(40);
  v1::AcquireTrialResponse response;
  const absl::Time asked = absl::Now();
  ASSERT_TRUE(workers_->AcquireTrial(&call, request, &response).ok());
  EXPECT_LT(absl::Now() - asked, absl::Seconds(15));
  EXPECT_TRUE(response.blocked());
  EXPECT_THAT(response.waiting_for(), HasSubstr("the server has no study deleted"));
}

TEST_F(CoordinatorTest, ACallMadeTwiceHasOneEffect) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  const std::string session = Register();
  const v1::AcquireTrialResponse first = Acquire(session, "a1");
  const v1::AcquireTrialResponse again = Acquire(session, "a1");
  EXPECT_EQ(first.assignment().lease_token(), again.assignment().lease_token());
  EXPECT_EQ(Complete(first.assignment(), 0.7).state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(Complete(first.assignment(), 0.7).state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(Get().counts().completed(), 1);
}

TEST_F(CoordinatorTest, ARequestIdServesOneRequest) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  v1::EnqueueTrialRequest request;
  request.set_study("plain");
  request.set_request_id("e1");
  (*request.mutable_params())["train.batch_size"].set_int_value(8);
  std::vector<int64_t> numbers;
  for (int i = 0; i < 2; ++i) {
    Call call;
    v1::EnqueueTrialResponse response;
    ASSERT_TRUE(studies_->EnqueueTrial(&call, request, &response).ok());
    EXPECT_EQ(response.trial().params().at("train.batch_size").int_value(), 8);
    numbers.push_back(response.trial().number());
  }
  EXPECT_EQ(numbers[0], numbers[1]);
  (*request.mutable_params())["train.batch_size"].set_int_value(9);
  Call call;
  v1::EnqueueTrialResponse response;
  EXPECT_EQ(studies_->EnqueueTrial(&call, request, &response).error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(CoordinatorTest, BadRequestsSayWhatIsWrong) {
  const grpc::Status yaml = Create("name: x\nbugdet: {trials: 3}\n");
  EXPECT_EQ(yaml.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(yaml.error_message(), HasSubstr("my.yaml:2:"));

  Call get_call;
  v1::GetTrialRequest get;
  get.set_study("absent");
  v1::GetTrialResponse got;
  EXPECT_EQ(studies_->GetTrial(&get_call, get, &got).error_code(), grpc::StatusCode::NOT_FOUND);

  Call list_call;
  v1::ListStudiesRequest list;
  list.set_page_size(1001);
  v1::ListStudiesResponse listed;
  const grpc::Status page = studies_->ListStudies(&list_call, list, &listed);
  EXPECT_EQ(page.error_message(), "page_size: expected 0 to 1000, got 1001");

  Call finish_call;
  v1::FinishTrialResponse finished;
  EXPECT_EQ(workers_->FinishTrial(&finish_call, v1::FinishTrialRequest(), &finished).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CoordinatorTest, ValidateOnlyStoresNothing) {
  Call call;
  v1::CreateStudyRequest request;
  request.set_yaml(kPlainStudy);
  request.set_validate_only(true);
  v1::CreateStudyResponse response;
  ASSERT_TRUE(studies_->CreateStudy(&call, request, &response).ok());
  EXPECT_EQ(response.study().name(), "plain");
  EXPECT_TRUE(coordinator_->studies().queries().ListStudies()->empty());
}

TEST_F(CoordinatorTest, StudiesListByPages) {
  for (const std::string name : {"c", "a", "b"}) {
    ASSERT_TRUE(Create("name: " + name + "\n" + std::string(kPlainStudy).substr(13)).ok());
  }
  std::vector<std::string> names;
  v1::ListStudiesRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    Call call;
    v1::ListStudiesResponse response;
    ASSERT_TRUE(studies_->ListStudies(&call, request, &response).ok());
    for (const v1::Study& study : response.studies()) names.push_back(study.name());
    request.set_page_token(response.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_THAT(names, testing::ElementsAre("a", "b", "c"));
  EXPECT_EQ(pages, 2);
}

TEST_F(CoordinatorTest, AWatchBeginsWithTheStudyAndLosesNoChange) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  Call watch_call;
  v1::WatchStudyRequest watch;
  watch.set_study("plain");
  const auto reader = studies_->WatchStudy(&watch_call, watch);
  v1::WatchStudyResponse event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.snapshot().name(), "plain");

  Call call;
  v1::EnqueueTrialRequest request;
  request.set_study("plain");
  request.set_request_id("e1");
  v1::EnqueueTrialResponse response;
  ASSERT_TRUE(studies_->EnqueueTrial(&call, request, &response).ok());
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.change().kind(), "queued");
  EXPECT_EQ(event.change().trial().number(), response.trial().number());
  coordinator_->Drain(absl::Seconds(10));
  EXPECT_FALSE(reader->Read(&event));
}

TEST_F(CoordinatorTest, AWatchGoesOnFromWhereItWas) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  Complete(Acquire(Register(), "a1").assignment(), 0.7);
  const int64_t last = Get().sequence();
  ASSERT_GT(last, 1);
  // -1: all there were, in order; N: those after N.
  const std::pair<int64_t, int64_t> cases[] = {{-1, 1}, {last - 1, last}};
  for (const auto& [after, first] : cases) {
    SCOPED_TRACE(after);
    Call call;
    v1::WatchStudyRequest watch;
    watch.set_study("plain");
    watch.set_after_sequence(after);
    const auto reader = studies_->WatchStudy(&call, watch);
    v1::WatchStudyResponse event;
    ASSERT_TRUE(reader->Read(&event));
    EXPECT_TRUE(event.has_snapshot());
    for (int64_t sequence = first; sequence <= last; ++sequence) {
      ASSERT_TRUE(reader->Read(&event));
      EXPECT_EQ(event.change().sequence(), sequence);
    }
    EXPECT_EQ(event.change().kind(), "finished");
    call.TryCancel();
  }
}

TEST_F(CoordinatorTest, LongPollsStarveNobodyAndADrainAnswersThem) {
  constexpr int kPolls = 48;
  constexpr int64_t kAsked = int64_t{1} << 30;  // bytes; they register with others
  ASSERT_TRUE(Create(kPlainStudy).ok());
  Call pause_call;
  v1::OrderStudyRequest pause;
  pause.set_name("plain");
  pause.set_order(v1::STUDY_ORDER_PAUSE);
  v1::OrderStudyResponse paused;
  ASSERT_TRUE(studies_->OrderStudy(&pause_call, pause, &paused).ok());
  std::vector<std::string> sessions;
  for (int i = 0; i < kPolls; ++i) sessions.push_back(Register("host-" + std::to_string(i)));
  std::vector<std::future<bool>> polls;
  for (const std::string& session : sessions) {
    polls.push_back(std::async(std::launch::async, [this, session] {
      Call call(std::chrono::minutes(5));
      v1::AcquireTrialRequest request;
      request.set_session(session);
      request.set_request_id("poll of " + session);
      request.set_capacity_bytes(kAsked);
      request.mutable_wait()->set_seconds(50);
      v1::AcquireTrialResponse response;
      return workers_->AcquireTrial(&call, request, &response).ok() && response.draining();
    }));
  }
  // A call that the server has not begun when it ends is no one that waits: it may be cancelled.
  for (int64_t waiting = 0; waiting < kPolls && !HasFailure();) {
    const v1::Study study = Get();
    waiting =
        std::count_if(study.workers().begin(), study.workers().end(),
                      [](const v1::Worker& worker) { return worker.capacity_bytes() == kAsked; });
  }
  coordinator_->Drain(absl::Minutes(1));
  for (std::future<bool>& poll : polls) EXPECT_TRUE(poll.get());
}

TEST_F(CoordinatorTest, AnAskThatMustWaitAnswersBeforeItsDeadline) {
  const std::string session = Register();
  Call call(std::chrono::milliseconds(1500));
  v1::AcquireTrialRequest request;
  request.set_session(session);
  request.mutable_wait()->set_seconds(50);
  v1::AcquireTrialResponse response;
  const grpc::Status status = workers_->AcquireTrial(&call, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(response.has_assignment());
}

TEST_F(CoordinatorTest, StudiesAndTrialsOutliveTheServer) {
  ASSERT_TRUE(Create(kPlainStudy).ok());
  Complete(Acquire(Register(), "a1").assignment(), 0.7);
  coordinator_.reset();
  Start();
  EXPECT_EQ(Get().counts().completed(), 1);
  EXPECT_EQ(Get().best_value(), 0.7);
}

TEST_F(CoordinatorTest, ASecondServerIsRefusedInOneLine) {
  CoordinatorOptions same_port = Options();
  same_port.listen = ParseListenAddress(coordinator_->address()).value();
  same_port.database = folder_ / "other.db";
  const absl::Status port = Coordinator::Start(same_port, clock_).status();
  EXPECT_EQ(port.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(port.message(), coordinator_->address() + " is in use");
  EXPECT_FALSE(std::filesystem::exists(same_port.database));

  const absl::Status database = Coordinator::Start(Options(), clock_).status();
  EXPECT_EQ(database.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(database.message()), HasSubstr("in use"));
}

TEST_F(CoordinatorTest, AUnixSocketServesAndALeftOverOneIsReplaced) {
  for (int i = 0; i < 2; ++i) {
    CoordinatorOptions options = Options();
    options.database = folder_ / "unix.db";
    options.listen = {.unix_path = folder_ / "hpo.sock"};
    const auto started = Coordinator::Start(options, clock_);
    ASSERT_TRUE(started.ok()) << started.status();
    const auto stub = v1::StudyService::NewStub(
        grpc::CreateChannel((*started)->address(), grpc::InsecureChannelCredentials()));
    Call call;
    v1::ListStudiesResponse response;
    EXPECT_TRUE(stub->ListStudies(&call, v1::ListStudiesRequest(), &response).ok());
  }
}

TEST_F(CoordinatorTest, AnImpossibleFolderIsNamed) {
  CoordinatorOptions options = Options();
  options.database = "/proc/hpo/hpo.db";
  const absl::Status status = Coordinator::Start(options, clock_).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/hpo"));
}

}  // namespace
}  // namespace hpo::server
