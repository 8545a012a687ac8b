#include "proto/convert/outcome_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "common/base/limits.h"
#include "tests/fakes/full_values.h"

namespace hpo {
namespace {

using testing::HasSubstr;

TEST(OutcomeProto, EveryOutcomeRoundTrips) {
  const TrialOutcome outcomes[] = {
      Completed{.metrics = {{"macro_f1", 0.71}, {"loss", 0.5}}, .model_path = "/models/7"},
      StoppedByPruner{.pruner = "median", .step = 40, .metrics = {{"macro_f1", 0.3}}},
      FullOutOfMemory(),
      Failed{.failure_class = FailureClass::kDeviceLost, .message = "sticky error"},
      Cancelled{.reason = "by the user"},
  };
  for (const TrialOutcome& outcome : outcomes) {
    SCOPED_TRACE(outcome.index());
    const absl::StatusOr<TrialOutcome> back = FromProto(ToProto(outcome));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, outcome);
  }
}

TEST(OutcomeProto, EveryKindAndClassRoundTrips) {
  for (int kind = 0; kind < 5; ++kind) {
    const TrialOutcome oom = OutOfMemory{.kind = static_cast<OomKind>(kind)};
    EXPECT_EQ(FromProto(ToProto(oom)).value(), oom) << kind;
  }
  for (int failure = 0; failure < 10; ++failure) {
    const TrialOutcome failed = Failed{.failure_class = static_cast<FailureClass>(failure)};
    EXPECT_EQ(FromProto(ToProto(failed)).value(), failed) << failure;
  }
}

TEST(OutcomeProto, WhatSaysNothingIsRefused) {
  v1::Outcome no_kind;
  v1::Outcome no_class;
  no_class.mutable_failed();
  v1::Outcome newer_oom;
  newer_oom.mutable_out_of_memory()->set_kind(static_cast<v1::OomKind>(99));
  const std::pair<v1::Outcome, const char*> cases[] = {
      {no_kind, "got none of them"},
      {no_class, "expected a failure class, got 0"},
      {newer_oom, "expected a kind of out-of-memory, got 99"},
  };
  for (const auto& [proto, message] : cases) {
    const absl::Status status = FromProto(proto).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(OutcomeProto, WhatSaysHowATrialEndedIsShortened) {
  v1::Outcome proto;
  const std::string traceback = "Traceback\n" + std::string(300'000, 'x') + "\nValueError: last";
  proto.mutable_failed()->set_message(traceback);
  proto.mutable_failed()->set_failure_class(v1::FAILURE_CLASS_TRAINER_CRASHED);
  const absl::StatusOr<TrialOutcome> outcome = FromProto(proto);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  const std::string& message = std::get<Failed>(*outcome).message;
  EXPECT_LE(message.size(), static_cast<size_t>(kErrorTextLimit.most));
  EXPECT_TRUE(absl::StartsWith(message, "Traceback\n")) << message.substr(0, 20);
  EXPECT_TRUE(absl::EndsWith(message, "\nValueError: last"));
}

TEST(OutcomeProto, PlansRoundTrip) {
  for (const Precision precision :
       {Precision::kFloat32, Precision::kBfloat16, Precision::kFloat16}) {
    MemoryPlan plan = FullPlan();
    plan.precision = precision;
    EXPECT_EQ(FromProto(ToProto(plan)).value(), plan);
  }
}

TEST(OutcomeProto, APlanMustSplitItsBatch) {
  const std::pair<int64_t, int64_t> sizes[] = {{0, 0}, {8, 0}, {8, 9}, {8, -1}, {-8, -9}};
  for (const auto& [effective, micro] : sizes) {
    v1::MemoryPlan proto;
    proto.set_effective_batch(effective);
    proto.set_micro_batch(micro);
    EXPECT_EQ(FromProto(proto).status().code(), absl::StatusCode::kInvalidArgument)
        << effective << "/" << micro;
  }
}

TEST(OutcomeProto, AnUnspecifiedPrecisionIsFloat32AndANewerOneIsRefused) {
  v1::MemoryPlan proto;
  proto.set_effective_batch(8);
  proto.set_micro_batch(8);
  EXPECT_EQ(FromProto(proto).value().precision, Precision::kFloat32);
  proto.set_precision(static_cast<v1::Precision>(99));
  EXPECT_FALSE(FromProto(proto).ok());
}

TEST(OutcomeProto, MeasurementsAndReportsRoundTrip) {
  const Measurement measurement{.step = 7, .epoch = 0.25, .metrics = {{"loss", 1.5}}};
  EXPECT_EQ(FromProto(ToProto(measurement)), measurement);
  const MemoryReport report = FullMemoryReport();
  EXPECT_EQ(FromMessage<MemoryReport>(ToMessage<v1::MemoryReport>(report)).value(), report);
}

TEST(OutcomeProto, AMemoryRecordRoundTripsAndIsChecked) {
  const MemoryRecord record = FullMemoryRecord();
  v1::MemoryRecord proto = ToProto(record);
  EXPECT_EQ(FromProto(proto).value(), record);
  proto.clear_plan();
  EXPECT_EQ(FromProto(proto)->plan, std::nullopt);
  proto.clear_stage();
  EXPECT_EQ(FromProto(proto).status().message(), "memory record: expected a stage, got none");
}

}  // namespace
}  // namespace hpo
