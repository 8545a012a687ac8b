#include "common/interop/mlflow/mlflow_client.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/fake_mlflow.h"

namespace hpo {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class MlflowClientTest : public ::testing::Test {
 protected:
  std::string NewRun() {
    return client_.CreateRun("id-of-e", "s #1", absl::FromUnixMillis(1234), {{"k", "v"}}).value();
  }

  FakeMlflow mlflow_;
  FakeMlflowHttp http_{mlflow_};
  MlflowClient client_{"http://mlflow:5000/", http_};
};

TEST_F(MlflowClientTest, AnExperimentIsMadeOnce) {
  EXPECT_EQ(client_.FindOrCreateExperiment("e").value(), "id-of-e");
  EXPECT_EQ(client_.FindOrCreateExperiment("e").value(), "id-of-e");
  EXPECT_EQ(mlflow_.NumCalls("experiments/create"), 1u);
}

TEST_F(MlflowClientTest, AnotherMayMakeTheExperimentMeanwhile) {
  mlflow_.Fail("experiments/create", 400, R"({"error_code":"RESOURCE_ALREADY_EXISTS"})", 1,
               /*done=*/true);
  EXPECT_EQ(client_.FindOrCreateExperiment("e").value(), "id-of-e");
}

TEST_F(MlflowClientTest, ADeletedExperimentIsNotWrittenTo) {
  mlflow_.AddExperiment("e", "deleted");
  const absl::Status status = client_.FindOrCreateExperiment("e").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("experiment 'e': expected an active one, got deleted"));
}

TEST_F(MlflowClientTest, ErrorsNameAddressStatusAndMlflowsMessage) {
  const std::pair<int, absl::StatusCode> cases[] = {
      {400, absl::StatusCode::kInvalidArgument},  {401, absl::StatusCode::kPermissionDenied},
      {403, absl::StatusCode::kPermissionDenied}, {404, absl::StatusCode::kNotFound},
      {429, absl::StatusCode::kUnavailable},      {503, absl::StatusCode::kUnavailable}};
  for (const auto& [answer, code] : cases) {
    mlflow_.Fail("runs/update", answer, R"({"error_code":"SOME_CODE","message":"what it says"})");
    const absl::Status status = client_.UpdateRun("run-1", "FINISHED", absl::InfinitePast());
    EXPECT_EQ(status.code(), code) << answer;
    EXPECT_EQ(
        status.message(),
        absl::StrCat("MLflow at http://mlflow:5000: POST /api/2.0/mlflow/runs/update: status ",
                     answer, ": SOME_CODE: what it says"));
  }
  mlflow_.Fail("runs/update", 0, "");
  const absl::Status away = client_.UpdateRun("run-1", "FINISHED", absl::InfinitePast());
  EXPECT_TRUE(absl::IsUnavailable(away));
  EXPECT_THAT(std::string(away.message()), HasSubstr("runs/update: connection refused"));
}

TEST_F(MlflowClientTest, WhatIsNotMlflowIsQuoted) {
  mlflow_.Fail("runs/update", 200, "<html>a login page</html>");
  const absl::Status status = client_.UpdateRun("run-1", "FINISHED", absl::InfinitePast());
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected a JSON object, got: <html>a login page"));
  mlflow_.Fail("runs/create", 200, R"({"run": {"info": []}})");
  EXPECT_THAT(std::string(client_.CreateRun("e", "n", absl::UnixEpoch(), {}).status().message()),
              HasSubstr("with /run/info/run_id"));
  mlflow_.Fail("runs/search", 200, R"({"runs": [{"info": {"run_id": 3}}]})");
  EXPECT_FALSE(client_.SearchRuns("e", "k", "v").ok());
  mlflow_.Fail("runs/update", 500, std::string(5000, 'x'));
  EXPECT_LT(client_.UpdateRun("run-1", "FINISHED", absl::InfinitePast()).message().size(), 600u);
}

TEST_F(MlflowClientTest, EveryPageOfASearchIsRead) {
  mlflow_.SetPageSize(2);
  for (int i = 0; i < 5; ++i) NewRun();
  const auto runs = client_.SearchRuns("id-of-e", "hpo.study", "s");
  ASSERT_TRUE(runs.ok()) << runs.status();
  ASSERT_THAT(*runs, SizeIs(5));
  EXPECT_EQ(runs->back().tags.at("k"), "v");
  EXPECT_EQ(mlflow_.calls().back().second["filter"], "tags.`hpo.study` = 's'");
}

TEST_F(MlflowClientTest, ABatchIsCutToTheLimitsAndItsTagsGoLast) {
  const std::string run = NewRun();
  MlflowBatch batch;
  for (int i = 0; i < 230; ++i) batch.params[absl::StrCat("p", i)] = "1";
  for (int i = 0; i < 2000; ++i) {
    batch.metrics.push_back({.key = "loss", .value = 0.5, .step = i, .time = absl::UnixEpoch()});
  }
  for (int i = 0; i < 120; ++i) batch.tags[absl::StrCat("t", i)] = std::string(6000, 'x');
  const absl::Status logged = client_.LogBatch(run, batch);
  ASSERT_TRUE(logged.ok()) << logged;
  const FakeMlflow::Run stored = mlflow_.runs().at(0);
  EXPECT_THAT(stored.params, SizeIs(230));
  EXPECT_THAT(stored.metrics, SizeIs(2000));
  EXPECT_THAT(stored.tags, SizeIs(121));
  EXPECT_LE(stored.tags.at("t5").size(), 5000u);
  size_t metrics_seen = 0;
  for (const auto& [path, body] : mlflow_.calls()) {
    if (path != "runs/log-batch") continue;
    metrics_seen += body["metrics"].size();
    if (body["tags"].empty()) continue;
    EXPECT_EQ(metrics_seen, 2000u) << "tags tell that all is there";
  }
}

TEST_F(MlflowClientTest, NumbersThatAreNotFiniteHaveNames) {
  const std::string run = NewRun();
  const double infinity = std::numeric_limits<double>::infinity();
  MlflowBatch batch;
  for (const double value : {std::nan(""), infinity, -infinity, 0.25}) {
    batch.metrics.push_back({.key = "loss", .value = value, .time = absl::FromUnixMillis(77)});
  }
  ASSERT_TRUE(client_.LogBatch(run, batch).ok());
  const std::vector<nlohmann::json> metrics = mlflow_.runs().at(0).metrics;
  EXPECT_EQ(metrics[0]["value"], "NaN");
  EXPECT_EQ(metrics[1]["value"], "Infinity");
  EXPECT_EQ(metrics[2]["value"], "-Infinity");
  EXPECT_EQ(metrics[3]["value"], 0.25);
  EXPECT_EQ(metrics[3]["timestamp"], 77);
}

TEST(MlflowUri, IsAWebAddressWithoutCredentials) {
  for (const char* good : {"http://127.0.0.1:5000", "https://mlflow.example.org/team/"}) {
    EXPECT_TRUE(CheckMlflowUri(good).ok()) << good;
  }
  for (const char* bad : {"", "mlflow:5000", "file:///tmp/runs", "http://", "http:///x",
                          "http://h?x=1", "http://h x", "databricks"}) {
    const absl::Status status = CheckMlflowUri(bad);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("got '", bad, "'")));
  }
  EXPECT_EQ(CheckMlflowUri("http://me:secret@h").message().find("secret"), absl::string_view::npos);
}

}  // namespace
}  // namespace hpo
