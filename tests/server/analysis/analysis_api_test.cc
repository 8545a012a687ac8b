#include "server/analysis/analysis_api.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "hpo/v1/analysis.grpc.pb.h"
#include "tests/server/coordinator_fixture.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The calls as a client makes them, so that their conversion is seen, too.
class AnalysisApiTest : public CoordinatorFixture {
 protected:
  void SetUp() override {
    CoordinatorFixture::SetUp();
    analysis_ = v1::AnalysisService::NewStub(channel_);
    const std::string study = absl::StrReplaceAll(kPlainStudy, {{"trials: 4", "trials: 100"}});
    ASSERT_TRUE(Create(study).ok());
    session_ = Register();
  }

  // A trial that measures twice and completes.
  int64_t CompleteOne(double score) {
    const v1::Assignment assignment =
        Acquire(session_, absl::StrCat("a", num_asked_++)).assignment();
    v1::Outcome outcome;
    (*outcome.mutable_completed()->mutable_metrics())["score"] = score;
    v1::FinishTrialRequest request = Finishing(assignment, outcome);
    for (const int64_t step : {10, 20}) {
      v1::Measurement& measurement = *request.add_measurements();
      measurement.set_step(step);
      (*measurement.mutable_metrics())["score"] = score * static_cast<double>(step) / 20.0;
      (*measurement.mutable_metrics())["loss"] = 1.0;
    }
    Call call;
    v1::FinishTrialResponse response;
    EXPECT_TRUE(workers_->FinishTrial(&call, request, &response).ok());
    return assignment.trial();
  }

  grpc::Status Importance(const v1::GetImportanceRequest& request) {
    Call call;
    importance_.Clear();
    return analysis_->GetImportance(&call, request, &importance_);
  }
  grpc::Status Curves(const v1::GetCurvesRequest& request) {
    Call call;
    curves_.Clear();
    return analysis_->GetCurves(&call, request, &curves_);
  }
  v1::GetTimelineResponse Timeline(int count = 0) {
    Call call;
    v1::GetTimelineRequest request;
    request.set_study("plain");
    request.set_count(count);
    v1::GetTimelineResponse response;
    EXPECT_TRUE(analysis_->GetTimeline(&call, request, &response).ok());
    return response;
  }

  std::unique_ptr<v1::AnalysisService::Stub> analysis_;
  v1::GetImportanceResponse importance_;
  v1::GetCurvesResponse curves_;
  std::string session_;
  int num_asked_ = 0;
};

TEST_F(AnalysisApiTest, ImportanceHasRangesAndFollowsTheTrials) {
  v1::GetImportanceRequest request;
  request.set_study("plain");
  const grpc::Status few = Importance(request);
  EXPECT_EQ(few.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(few.error_message(), HasSubstr("study plain: importance: expected at least 2"));
  for (int i = 0; i < 20; ++i) CompleteOne(0.5 + 0.01 * i);
  for (const auto method : {v1::IMPORTANCE_METHOD_PED_ANOVA, v1::IMPORTANCE_METHOD_FANOVA}) {
    request.set_method(method);
    const grpc::Status status = Importance(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(importance_.trials(), 20);
    EXPECT_EQ(importance_.metric(), "score");
    EXPECT_GT(importance_.resamples(), 50);
    ASSERT_EQ(importance_.parameters_size(), 3);
    double sum = 0.0;
    for (const v1::ParameterImportance& one : importance_.parameters()) {
      sum += one.share();
      EXPECT_LE(one.low(), one.high());
    }
    EXPECT_NEAR(sum, 1.0, 1e-12);
  }
  const int64_t sequence = importance_.sequence();
  const double first = importance_.parameters(0).share();
  CompleteOne(5.0);
  ASSERT_TRUE(Importance(request).ok());
  EXPECT_EQ(importance_.trials(), 21);
  EXPECT_GT(importance_.sequence(), sequence);
  EXPECT_NE(importance_.parameters(0).share(), first);
  request.set_metric("loss");
  const grpc::Status none = Importance(request);
  EXPECT_EQ(none.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(none.error_message(), HasSubstr("metric: expected an objective of plain, score"));
  request.set_study("none");
  EXPECT_EQ(Importance(request).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AnalysisApiTest, CurvesAreThoseOfTheNewestOrTheNamedTrials) {
  for (int i = 0; i < 4; ++i) CompleteOne(0.1 * (i + 1));
  Acquire(session_, "runs");  // it has measured nothing
  v1::GetCurvesRequest request;
  request.set_study("plain");
  request.set_count(2);
  ASSERT_TRUE(Curves(request).ok());
  ASSERT_EQ(curves_.curves_size(), 2);
  EXPECT_EQ(curves_.metric(), "score");
  EXPECT_THAT(curves_.metrics(), ElementsAre("loss", "score"));
  EXPECT_EQ(curves_.curves(0).number(), 3);
  EXPECT_EQ(curves_.curves(0).state(), "C");
  EXPECT_THAT(curves_.curves(0).steps(), ElementsAre(10, 20));
  EXPECT_THAT(curves_.curves(0).values(), ElementsAre(0.2, 0.4));
  EXPECT_EQ(curves_.curves(1).number(), 2);
  request.set_metric("loss");
  request.add_where("value<0.25");
  ASSERT_TRUE(Curves(request).ok());
  ASSERT_EQ(curves_.curves_size(), 2);
  EXPECT_EQ(curves_.curves(0).number(), 1);
  EXPECT_THAT(curves_.curves(0).values(), ElementsAre(1.0, 1.0));
  request.Clear();
  request.set_study("plain");
  request.add_numbers(0);
  ASSERT_TRUE(Curves(request).ok());
  ASSERT_EQ(curves_.curves_size(), 1);
  EXPECT_EQ(curves_.curves(0).number(), 0);
  request.add_numbers(77);
  EXPECT_EQ(Curves(request).error_code(), grpc::StatusCode::NOT_FOUND);
  request.clear_numbers();
  request.add_where("x>y");
  EXPECT_EQ(Curves(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(AnalysisApiTest, TheTimelineHasAttemptsByTheirStart) {
  CompleteOne(0.5);
  v1::Outcome failed;
  failed.mutable_failed()->set_message("ValueError");
  failed.mutable_failed()->set_failure_class(v1::FAILURE_CLASS_BAD_DATA);
  Finish(Acquire(session_, "fails").assignment(), failed);
  Acquire(session_, "runs");
  const v1::GetTimelineResponse all = Timeline();
  EXPECT_EQ(all.left_off(), 0);
  EXPECT_THAT(all.workers(), ElementsAre("host:cpu"));
  EXPECT_THAT(all.worker_indexes(), ElementsAre(0, 0, 0));
  EXPECT_THAT(all.numbers(), ElementsAre(0, 1, 2));
  EXPECT_THAT(all.attempts(), ElementsAre(1, 1, 1));
  EXPECT_EQ(all.uses(), "UFR");
  EXPECT_LE(all.started(0), all.ended(0));
  EXPECT_LE(all.started(0), all.started(1));
  EXPECT_GT(all.started(0), 1.7e9) << "Unix seconds";
  EXPECT_EQ(all.ended(2), 0.0);
  const v1::GetTimelineResponse latest = Timeline(1);
  EXPECT_THAT(latest.numbers(), ElementsAre(2));
  EXPECT_EQ(latest.left_off(), 2);
  EXPECT_GT(Get().time_by_use().failed().nanos(), 0);
  EXPECT_GT(Get().time_by_use().useful().nanos(), 0);
}

}  // namespace
}  // namespace hpo::server
