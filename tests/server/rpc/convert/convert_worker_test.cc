#include "server/rpc/convert/convert_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/convert/outcome_proto.h"

namespace hpo::server {

// The overloads of this library would hide those of proto/convert.
using hpo::FromProto;
using hpo::ToProto;

namespace {

const LeaseRef kLease{.trial = {.study = "criteria", .number = TrialNumber{8}},
                      .attempt = AttemptNumber{2},
                      .token = "t0"};

template <typename Message>
void SetLease(Message& message) {
  message.set_study("criteria");
  message.set_trial(8);
  message.set_attempt(2);
  message.set_lease_token("t0");
}

TEST(ConvertWorker, RegistrationGoesOut) {
  const v1::RegisterWorkerResponse proto = ToProto(
      Registration{.session = "s", .heartbeat_interval = absl::Seconds(10), .studies_version = 5});
  EXPECT_EQ(proto.session(), "s");
  EXPECT_EQ(proto.heartbeat_interval().seconds(), 10);
  EXPECT_EQ(proto.studies_version(), 5);
}

TEST(ConvertWorker, AcquireComesIn) {
  v1::AcquireTrialRequest proto;
  proto.set_session("s");
  proto.set_request_id("r");
  proto.mutable_wait()->set_seconds(30);
  proto.set_capacity_bytes(1024);
  EXPECT_EQ(
      FromProto(proto),
      (AcquireCall{
          .session = "s", .request_id = "r", .wait = absl::Seconds(30), .capacity = Bytes{1024}}));
}

Assignment FullAssignment() {
  Assignment assignment;
  assignment.lease = kLease;
  assignment.task.params = {{"train.lr", 3e-5}};
  assignment.task.plan = {.effective_batch = 64, .micro_batch = 8};
  assignment.task.predicted = GiB(1);
  assignment.required = GiB(1) + MiB(31);
  assignment.task.limit = GiB(2);
  assignment.task.admission = false;
  assignment.demonstration = true;
  assignment.task.memory.policy = MemoryPolicy::kStrict;
  assignment.task.memory.allow_checkpointing = true;
  assignment.task.trainer = {.task = "text-classification",
                             .train = "train.jsonl",
                             .validation = "valid.jsonl",
                             .epochs = 4,
                             .model_init = "random",
                             .measure_every_steps = 50,
                             .labels = {"no", "yes"}};
  assignment.task.objective = {.metric = "loss", .direction = Direction::kMinimize};
  assignment.constraints = {{.metric = "ms", .at_least = 1.0}};
  assignment.task.seed = 99;
  return assignment;
}

TEST(ConvertWorker, AnAssignmentCarriesEverythingATrainerNeeds) {
  const v1::Assignment proto = ToProto(AcquireResult{.assignment = FullAssignment()}).assignment();
  EXPECT_EQ(proto.study(), "criteria");
  EXPECT_EQ(proto.trial(), 8);
  EXPECT_EQ(proto.attempt(), 2);
  EXPECT_EQ(proto.lease_token(), "t0");
  EXPECT_EQ(proto.params().at("train.lr").double_value(), 3e-5);
  EXPECT_EQ(FromProto(proto.plan()).value(), FullAssignment().task.plan);
  EXPECT_EQ(proto.predicted_bytes(), GiB(1).count);
  EXPECT_EQ(proto.required_bytes(), (GiB(1) + MiB(31)).count);
  EXPECT_EQ(proto.limit_bytes(), GiB(2).count);
  EXPECT_TRUE(proto.allow_checkpointing());
  EXPECT_FALSE(proto.admission());
  EXPECT_TRUE(proto.demonstration());
  EXPECT_EQ(proto.memory_policy(), "strict");
  EXPECT_EQ(proto.train(), "train.jsonl");
  EXPECT_EQ(proto.validation(), "valid.jsonl");
  EXPECT_EQ(proto.epochs(), 4);
  EXPECT_EQ(proto.model_init(), "random");
  EXPECT_EQ(proto.measure_every_steps(), 50);
  EXPECT_EQ(proto.labels_size(), 2);
  EXPECT_EQ(proto.objective().metric(), "loss");
  ASSERT_EQ(proto.constraints_size(), 1);
  EXPECT_EQ(proto.constraints(0).at_least(), 1.0);
  EXPECT_FALSE(proto.constraints(0).has_at_most());
  EXPECT_EQ(proto.seed(), 99u);
}

TEST(ConvertWorker, NoAssignmentSaysWhy) {
  const v1::AcquireTrialResponse proto = ToProto(AcquireResult{.studies_version = 7,
                                                               .all_studies_finished = true,
                                                               .draining = true,
                                                               .waiting_for = "nothing left",
                                                               .finished = {{"s", "why", true}}});
  EXPECT_FALSE(proto.has_assignment());
  EXPECT_EQ(proto.studies_version(), 7);
  EXPECT_TRUE(proto.all_studies_finished());
  EXPECT_TRUE(proto.draining());
  EXPECT_EQ(proto.waiting_for(), "nothing left");
  ASSERT_EQ(proto.finished_size(), 1);
  EXPECT_EQ(proto.finished(0).study(), "s");
  EXPECT_EQ(proto.finished(0).why(), "why");
  EXPECT_TRUE(proto.finished(0).failed());
  EXPECT_TRUE(ToProto(AcquireResult{.assignment = FullAssignment()}).has_assignment());
}

TEST(ConvertWorker, HeartbeatsComeInAndDirectivesGoOutInOrder) {
  v1::HeartbeatRequest request;
  request.set_session("s");
  request.set_capacity_bytes(5);
  SetLease(*request.add_leases());
  request.mutable_leases(0)->set_step(40);
  request.mutable_leases(0)->set_stage("training");
  request.mutable_leases(0)->set_allocated_bytes(6);
  request.mutable_leases(0)->set_reserved_bytes(7);
  request.mutable_leases(0)->set_log_tail("10 %\r20 %\n\tend");
  const HeartbeatCall call = FromProto(request);
  EXPECT_EQ(call.session, "s");
  EXPECT_EQ(call.capacity, Bytes{5});
  ASSERT_EQ(call.beats.size(), 1u);
  EXPECT_EQ(call.beats[0].lease, kLease);
  EXPECT_EQ(call.beats[0].step, 40);
  EXPECT_EQ(call.beats[0].stage, "training");
  EXPECT_EQ(call.beats[0].allocated, Bytes{6});
  EXPECT_EQ(call.beats[0].reserved, Bytes{7});
  EXPECT_EQ(call.beats[0].log_tail, "10 %?20 %\n\tend");

  const v1::HeartbeatResponse response = ToProto(HeartbeatResult{
      .directives = {Directive::kLeaseLost, Directive::kContinue, Directive::kCancelled,
                     Directive::kStopPruned, Directive::kTimeLimit},
      .next = absl::Seconds(10),
      .register_again = true});
  EXPECT_THAT(response.directives(),
              testing::ElementsAre(v1::DIRECTIVE_LEASE_LOST, v1::DIRECTIVE_CONTINUE,
                                   v1::DIRECTIVE_CANCELLED, v1::DIRECTIVE_STOP_PRUNED,
                                   v1::DIRECTIVE_TIME_LIMIT));
  EXPECT_EQ(response.next().seconds(), 10);
  EXPECT_TRUE(response.register_again());
}

TEST(ConvertWorker, ReportsComeIn) {
  v1::ReportMeasurementsRequest request;
  SetLease(request);
  request.add_measurements()->set_step(10);
  request.add_measurements()->set_step(20);
  request.set_num_ooms(3);
  EXPECT_EQ(FromProto(request).value().report.new_plan, std::nullopt);
  request.mutable_plan()->set_effective_batch(8);
  request.mutable_plan()->set_micro_batch(4);
  request.add_memory_records()->set_stage("Training End");
  const AttemptReport report = FromProto(request).value().report;
  EXPECT_EQ(report.lease, kLease);
  ASSERT_EQ(report.measurements.size(), 2u);
  EXPECT_EQ(report.measurements[1].step, 20);
  EXPECT_EQ(report.new_plan->micro_batch, 4);
  EXPECT_EQ(report.num_ooms, 3);
  ASSERT_EQ(report.memory_records.size(), 1u);
  EXPECT_EQ(report.memory_records[0].stage, "Training End");
  request.mutable_memory_records(0)->set_stage("");
  EXPECT_FALSE(FromProto(request).ok());
  request.mutable_memory_records(0)->set_stage("Training End");
  request.mutable_plan()->set_micro_batch(9);
  EXPECT_FALSE(FromProto(request).ok());
}

TEST(ConvertWorker, FinishedTrialsComeIn) {
  v1::FinishTrialRequest request;
  SetLease(request);
  request.set_request_id("r");
  EXPECT_EQ(FromProto(request).status().code(), absl::StatusCode::kInvalidArgument);
  *request.mutable_outcome() = ToProto(TrialOutcome(Completed{.metrics = {{"macro_f1", 0.7}}}));
  request.mutable_memory()->set_live_peak_bytes(12);
  request.add_measurements()->set_step(10);
  request.add_memory_records()->set_stage("Trial Success");
  request.set_log_tail(std::string(40'000, 'x') + "\nlast\n");
  const FinishCall call = FromProto(request).value();
  EXPECT_EQ(call.request.memory_records.at(0).stage, "Trial Success");
  EXPECT_EQ(call.request_id, "r");
  EXPECT_EQ(call.request.lease, kLease);
  EXPECT_EQ(std::get<Completed>(call.request.outcome).metrics.at("macro_f1"), 0.7);
  EXPECT_EQ(call.request.memory.live_peak, Bytes{12});
  EXPECT_EQ(call.request.final_plan, MemoryPlan());
  EXPECT_EQ(call.request.measurements.size(), 1u);
  EXPECT_EQ(call.request.log_tail, "last\n") << "whole lines";
}

TEST(ConvertWorker, ReleasesComeInWithTheirReason) {
  v1::ReleaseTrialRequest request;
  SetLease(request);
  EXPECT_FALSE(FromProto(request).ok());
  request.set_reason(v1::RELEASE_REASON_REJECTED);
  request.set_needed_bytes(77);
  request.set_note("too big");
  request.set_log_tail("end\x1b[0m\n");
  const ReleaseCall call = FromProto(request).value();
  EXPECT_EQ(call.release.lease, kLease);
  EXPECT_EQ(call.release.reason, ReleaseReason::kRejected);
  EXPECT_EQ(call.release.needed, Bytes{77});
  EXPECT_EQ(call.release.note, "too big");
  EXPECT_EQ(call.release.log_tail, "end?[0m\n");
}

TEST(ConvertWorker, AnswersGoOut) {
  const v1::ReportMeasurementsResponse report =
      ToProto(ReportResult{.should_stop = true,
                           .pruner = "median",
                           .why = "below",
                           .directive = Directive::kStopPruned});
  EXPECT_EQ(report.directive(), v1::DIRECTIVE_STOP_PRUNED);
  EXPECT_TRUE(report.should_stop());
  EXPECT_EQ(report.pruner(), "median");
  EXPECT_EQ(report.why(), "below");
  const v1::FinishTrialResponse finish =
      ToProto(FinishResult{.state = TrialState::kCompleted, .stored = true});
  EXPECT_EQ(finish.state(), v1::TRIAL_STATE_COMPLETED);
  EXPECT_TRUE(finish.stored());
}

TEST(ConvertWorker, WhatToDryRunGoesOut) {
  EXPECT_FALSE(ToProto(std::optional<Preflight>()).has_preflight());
  Preflight preflight{.id = "3-1", .assignment = {.lease = kLease}};
  preflight.others.push_back({.kind = "cuda", .name = "T4", .capability = "7.5"});
  const v1::AcquirePreflightResponse proto = ToProto(std::optional(preflight));
  ASSERT_TRUE(proto.has_preflight());
  EXPECT_EQ(proto.preflight().id(), "3-1");
  EXPECT_EQ(proto.preflight().assignment().study(), "criteria");
  ASSERT_EQ(proto.preflight().others_size(), 1);
  EXPECT_EQ(proto.preflight().others(0).capability(), "7.5");
}

TEST(ConvertWorker, WhatADryRunFoundComesIn) {
  v1::ReportPreflightRequest request;
  request.set_session("s");
  request.set_id("3-1");
  request.mutable_took()->set_seconds(9);
  request.set_message(std::string(1 << 20, 'x'));
  v1::PreflightNeed& need = *request.add_needs();
  EXPECT_FALSE(FromProto(request).ok()) << "no state";
  need.set_capability("8.0");
  need.set_threads(221'184);
  need.set_state(v1::PREFLIGHT_STATE_MEASURED);
  need.set_required_bytes(77);
  need.set_margin_bytes(5);
  const PreflightReportCall call = FromProto(request).value();
  EXPECT_EQ(call.session, "s");
  EXPECT_EQ(call.report.id, "3-1");
  EXPECT_EQ(call.report.took, absl::Seconds(9));
  EXPECT_LT(call.report.message.size(), request.message().size()) << "is shortened";
  EXPECT_EQ(call.report.needs, (std::vector<PreflightNeed>{{.capability = "8.0",
                                                            .threads = 221'184,
                                                            .state = PreflightState::kMeasured,
                                                            .required = Bytes{77},
                                                            .margin = Bytes{5}}}));
}

}  // namespace
}  // namespace hpo::server
