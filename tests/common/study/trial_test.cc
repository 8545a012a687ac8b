#include "common/study/trial.h"

#include <cmath>
#include <limits>

#include "common/study/trial_fields.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/fakes/full_values.h"

namespace hpo {
namespace {

TEST(TrialNames, ParseIsTheInverseOfName) {
  EXPECT_EQ(Name(TrialState::kCompleted), "COMPLETED");
  EXPECT_EQ(Name(PruneReason::kPredictedOutOfMemory), "PREDICTED_OUT_OF_MEMORY");
  EXPECT_EQ(Name(Precision::kBfloat16), "bfloat16");
  EXPECT_EQ(Name(OomKind::kHost), "HOST");
  EXPECT_EQ(Name(FailureClass::kInternal), "INTERNAL");
  EXPECT_EQ(Name(ReleaseReason::kUnhealthy), "UNHEALTHY");
  EXPECT_EQ(Name(AttemptState::kSuperseded), "SUPERSEDED");
  EXPECT_EQ(ParseName<TrialState>("COMPLETED"), TrialState::kCompleted);
  EXPECT_EQ(ParseName<PruneReason>("PRUNER"), PruneReason::kPruner);
  EXPECT_EQ(ParseName<Precision>("float16"), Precision::kFloat16);
  EXPECT_EQ(ParseName<OomKind>("DIRTY_DEVICE"), OomKind::kDirtyDevice);
  EXPECT_EQ(ParseName<FailureClass>("DEVICE_LOST"), FailureClass::kDeviceLost);
  EXPECT_EQ(ParseName<ReleaseReason>("PREEMPTED"), ReleaseReason::kPreempted);
  EXPECT_EQ(ParseName<AttemptState>("LOST"), AttemptState::kLost);
  EXPECT_EQ(ParseName<TrialState>("completed"), std::nullopt);
  EXPECT_EQ(ParseName<TrialState>(""), std::nullopt);
}

TEST(TrialOutcome, IsStoredUnderOneStateAndReason) {
  OutOfMemory met;
  OutOfMemory predicted;
  predicted.predicted = true;
  OutOfMemory host;
  host.kind = OomKind::kHost;
  const struct {
    TrialOutcome outcome;
    TrialState state;
    std::optional<PruneReason> reason;
  } cases[] = {
      {Completed{}, TrialState::kCompleted, std::nullopt},
      {StoppedByPruner{}, TrialState::kPruned, PruneReason::kPruner},
      {met, TrialState::kPruned, PruneReason::kOutOfMemory},
      {predicted, TrialState::kPruned, PruneReason::kPredictedOutOfMemory},
      {host, TrialState::kPruned, PruneReason::kHostOutOfMemory},
      {Failed{}, TrialState::kFailed, std::nullopt},
      {Cancelled{}, TrialState::kCancelled, std::nullopt},
  };
  for (const auto& [outcome, state, reason] : cases) {
    SCOPED_TRACE(outcome.index());
    EXPECT_EQ(StateOf(outcome), state);
    EXPECT_EQ(PruneReasonOf(outcome), reason);
  }
}

TEST(TrialOutcome, JsonKeepsEveryField) {
  const TrialOutcome outcomes[] = {
      Completed{.metrics = {{"loss", 0.5}, {"macro_f1", 1.0}}, .model_path = "/out/best"},
      StoppedByPruner{.pruner = "median", .step = 200, .metrics = {{"macro_f1", 0.25}}},
      FullOutOfMemory(),
      Failed{.failure_class = FailureClass::kDiverged, .message = "loss is nan"},
      Cancelled{.reason = "by hand"},
  };
  for (const TrialOutcome& outcome : outcomes) {
    SCOPED_TRACE(outcome.index());
    const auto again = OutcomeFromJson(nlohmann::json::parse(OutcomeToJson(outcome).dump()));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, outcome);
  }
}

TEST(TrialOutcome, JsonErrorsNameTheMember) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "expected an object, got an array"},
      {R"({})", "kind: missing"},
      {R"({"kind": "won"})", "kind: expected one of completed, stopped_by_pruner"},
      {R"({"kind": "completed"})", "metrics: missing"},
      {R"({"kind": "completed", "metrics": {"f1": "0.5"}})",
       "metrics.f1: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", got the string "
       "\"0.5\""},
      {R"({"kind": "failed", "class": "BAD_LUCK", "message": ""})",
       "class: expected one of BAD_DATA"},
      {R"({"kind": "failed", "class": "INTERNAL"})", "message: missing"},
      {R"({"kind": "out_of_memory", "error_message": "", "peak_bytes": -1})",
       "peak_bytes: expected a number of bytes (an integer >= 0), got the integer -1"},
      {R"({"kind": "out_of_memory", "error_message": "", "plan": {"micro_batch": 1}})",
       "plan: effective_batch: missing"},
      {R"({"kind": "stopped_by_pruner", "step": 1.5})", "step: expected an integer"},
  };
  for (const auto& [text, expected] : cases) {
    SCOPED_TRACE(text);
    const auto outcome = OutcomeFromJson(nlohmann::json::parse(text));
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(outcome.status().message().find(expected), absl::string_view::npos)
        << outcome.status();
  }
}

TEST(Metrics, NumbersThatAreNotFiniteComeBackAsTheyWere) {
  const Metrics metrics = {{"a", std::numeric_limits<double>::quiet_NaN()},
                           {"b", std::numeric_limits<double>::infinity()},
                           {"c", 0.1},
                           {"d", -std::numeric_limits<double>::infinity()}};
  const nlohmann::json json = MetricsToJson(metrics);
  EXPECT_EQ(json.dump(), R"({"a":null,"b":"Infinity","c":0.1,"d":"-Infinity"})");
  const auto again = MetricsFromJson(json);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(std::isnan(again->at("a")));
  EXPECT_EQ(again->at("b"), metrics.at("b"));
  EXPECT_EQ(again->at("c"), 0.1);
  EXPECT_EQ(again->at("d"), metrics.at("d"));
  EXPECT_TRUE(std::isnan(MetricsFromJson({{"a", "NaN"}})->at("a")));
  EXPECT_EQ(MetricsFromJson({{"a", "inf"}}).status().message(),
            "metrics.a: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", got the string "
            "\"inf\"");
  EXPECT_FALSE(MetricsFromJson(nlohmann::json::array()).ok());
}

TEST(MemoryPlan, JsonKeepsEveryFieldAndRefusesBadSizes) {
  const MemoryPlan plan = FullPlan();
  const auto again = PlanFromJson(PlanToJson(plan));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, plan);
  EXPECT_EQ(plan.NumParts(), 11);

  nlohmann::json json = PlanToJson(plan);
  json["micro_batch"] = 0;
  EXPECT_EQ(PlanFromJson(json).status().message(), "micro_batch: expected >= 1, got 0");
  json = PlanToJson(plan);
  json["precision"] = "int4";
  EXPECT_EQ(PlanFromJson(json).status().message(),
            "precision: expected one of float32, bfloat16, float16, got the string \"int4\"");
}

TEST(MemoryRecord, JsonKeepsEveryField) {
  const MemoryRecord record = FullMemoryRecord();
  const auto again = FromJson<MemoryRecord>(ToJson(record));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, record);
  EXPECT_EQ(ToJson(MemoryRecord{.stage = "Trial Start"}).size(), 2u)
      << "what is unknown is left out";
  EXPECT_FALSE(FromJson<MemoryRecord>(nlohmann::json::parse("{}")).ok());
  EXPECT_FALSE(
      FromJson<MemoryRecord>(nlohmann::json::parse(R"({"stage": "a", "resident_bytes": -1})"))
          .ok());
}

TEST(MemoryReport, JsonKeepsEveryField) {
  const MemoryReport report = FullMemoryReport();
  const auto again = FromJson<MemoryReport>(ToJson(report));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, report);
  EXPECT_FALSE(FromJson<MemoryReport>(nlohmann::json::parse(R"({"num_ooms": "2"})")).ok());
}

TEST(OomConfig, HasTheKeysOfTheSources) {
  const ParamMap params = {{"model.name", std::string("bert-large-uncased")},
                           {"train.batch_size", int64_t{16}},
                           {"train.grad_accum", int64_t{3}},
                           {"tok.max_length", int64_t{512}},
                           {"train.lr", 1e-5}};
  EXPECT_EQ(OomConfig(params).dump(),
            R"({"batch_size":16,"effective_batch_size":48,"grad_accum":3,"max_length":512,)"
            R"("model":"bert-large-uncased"})");
}

TEST(OomConfig, LeavesOutWhatTheStudyDoesNotSearch) {
  EXPECT_EQ(OomConfig({{"train.batch_size", int64_t{8}}}).dump(),
            R"({"batch_size":8,"effective_batch_size":8})");
  EXPECT_EQ(OomConfig({}).dump(), "{}");
}

}  // namespace
}  // namespace hpo
