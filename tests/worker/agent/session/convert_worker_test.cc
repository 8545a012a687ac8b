#include "worker/agent/session/convert_worker.h"

#include <string>

#include "common/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LeaseRef Lease() {
  return {.trial = {.study = "criteria", .number = {12}}, .attempt = {3}, .token = "secret"};
}

template <typename Request>
void ExpectLease(const Request& request) {
  EXPECT_EQ(request.study(), "criteria");
  EXPECT_EQ(request.trial(), 12);
  EXPECT_EQ(request.attempt(), 3);
  EXPECT_EQ(request.lease_token(), "secret");
}

v1::Assignment WireAssignment() {
  v1::Assignment proto;
  proto.set_study("criteria");
  proto.set_trial(12);
  proto.set_attempt(3);
  proto.set_lease_token("secret");
  (*proto.mutable_params())["train.lr"].set_double_value(3e-5);
  (*proto.mutable_params())["seed"].set_int_value(7);
  (*proto.mutable_params())["model.name"].set_string_value("bert-base-uncased");
  proto.mutable_plan()->set_effective_batch(32);
  proto.mutable_plan()->set_micro_batch(8);
  proto.set_predicted_bytes(1000);
  proto.set_required_bytes(1030);
  proto.set_limit_bytes(2000);
  proto.set_admission(true);
  proto.set_memory_policy("strict");
  proto.set_allow_checkpointing(true);
  proto.set_task("text-classification");
  proto.set_train("train.jsonl");
  proto.set_validation("valid.jsonl");
  proto.add_labels("no");
  proto.add_labels("yes");
  proto.set_epochs(3);
  proto.set_measure_every_steps(50);
  proto.set_model_init("random");
  proto.mutable_objective()->set_metric("loss");
  proto.add_constraints()->set_metric("ms");
  proto.mutable_constraints(0)->set_at_most(50.0);
  proto.mutable_objective()->set_direction(v1::DIRECTION_MINIMIZE);
  proto.set_seed(99);
  return proto;
}

absl::StatusOr<Assignment> Read(const v1::Assignment& proto) {
  v1::AcquireTrialResponse response;
  *response.mutable_assignment() = proto;
  HPO_ASSIGN_OR_RETURN(const AcquireResult result, FromProto(response));
  return result.assignment.value();
}

TEST(ConvertWorker, AnAssignmentArrivesWhole) {
  const absl::StatusOr<Assignment> assignment = Read(WireAssignment());
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->lease, Lease());
  EXPECT_EQ(assignment->task.params, (ParamMap{{"train.lr", 3e-5},
                                               {"seed", int64_t{7}},
                                               {"model.name", std::string("bert-base-uncased")}}));
  EXPECT_EQ(assignment->task.plan, (MemoryPlan{.effective_batch = 32, .micro_batch = 8}));
  EXPECT_EQ(assignment->task.predicted, Bytes{1000});
  EXPECT_EQ(assignment->required, Bytes{1030});
  EXPECT_EQ(assignment->task.limit, Bytes{2000});
  EXPECT_TRUE(assignment->task.admission);
  EXPECT_FALSE(assignment->demonstration);
  EXPECT_EQ(assignment->task.memory.policy, MemoryPolicy::kStrict);
  EXPECT_TRUE(assignment->task.memory.allow_checkpointing);
  EXPECT_EQ(assignment->task.trainer.train, "train.jsonl");
  EXPECT_EQ(assignment->task.trainer.validation, "valid.jsonl");
  EXPECT_THAT(assignment->task.trainer.labels, ElementsAre("no", "yes"));
  EXPECT_EQ(assignment->task.trainer.epochs, 3);
  EXPECT_EQ(assignment->task.trainer.measure_every_steps, 50);
  EXPECT_EQ(assignment->task.trainer.model_init, "random");
  EXPECT_EQ(assignment->task.objective,
            (Objective{.metric = "loss", .direction = Direction::kMinimize}));
  EXPECT_EQ(assignment->constraints,
            (std::vector<MetricConstraint>{{.metric = "ms", .at_most = 50.0}}));
  EXPECT_EQ(assignment->task.seed, 99u);
}

TEST(ConvertWorker, AnAssignmentThatCannotBeUnderstoodIsRefused) {
  v1::Assignment untyped = WireAssignment();
  (*untyped.mutable_params())["dropout"] = v1::Value();
  EXPECT_THAT(std::string(Read(untyped).status().message()), HasSubstr("dropout"));

  v1::Assignment policy = WireAssignment();
  policy.set_memory_policy("generous");
  EXPECT_THAT(std::string(Read(policy).status().message()), HasSubstr("generous"));

  v1::Assignment plan = WireAssignment();
  plan.mutable_plan()->set_micro_batch(64);
  EXPECT_FALSE(Read(plan).ok());
}

TEST(ConvertWorker, AnAcquireWithoutATrialSaysWhy) {
  v1::AcquireTrialResponse proto;
  proto.set_studies_version(4);
  proto.set_draining(true);
  proto.set_waiting_for("no worker has bert-base-uncased");
  const absl::StatusOr<AcquireResult> result = FromProto(proto);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->assignment);
  EXPECT_EQ(result->studies_version, 4);
  EXPECT_TRUE(result->draining);
  EXPECT_FALSE(result->all_studies_finished);
  EXPECT_EQ(result->waiting_for, "no worker has bert-base-uncased");
  EXPECT_TRUE(result->finished.empty()) << "a server before this field";
  v1::FinishedStudy& finished = *proto.add_finished();
  finished.set_study("s");
  finished.set_why("stopped");
  finished.set_failed(true);
  EXPECT_EQ(FromProto(proto)->finished, (std::vector<FinishedStudy>{{"s", "stopped", true}}));
}

TEST(ConvertWorker, RequestsCarryTheLease) {
  ExpectLease(ToProto(LeaseBeat{.lease = Lease()}));
  ExpectLease(ToProto(AttemptReport{.lease = Lease()}));
  ExpectLease(ToProto(FinishRequest{.lease = Lease()}));
  ExpectLease(ToProto(TrialRelease{.lease = Lease()}));
}

TEST(ConvertWorker, ABeatSaysHowFarItIs) {
  const v1::HeartbeatRequest::Lease proto = ToProto(LeaseBeat{.lease = Lease(),
                                                              .step = 40,
                                                              .stage = "Training Start",
                                                              .allocated = MiB(1),
                                                              .reserved = MiB(2),
                                                              .log_tail = "epoch 1\n"});
  EXPECT_EQ(proto.step(), 40);
  EXPECT_EQ(proto.stage(), "Training Start");
  EXPECT_EQ(proto.allocated_bytes(), 1 << 20);
  EXPECT_EQ(proto.reserved_bytes(), 2 << 20);
  EXPECT_EQ(proto.log_tail(), "epoch 1\n");
}

TEST(ConvertWorker, AReportHasAPlanOnlyWhenItChanged) {
  AttemptReport report{.lease = Lease(),
                       .measurements = {{.step = 5, .epoch = 0.5, .metrics = {{"loss", 2.0}}}},
                       .num_ooms = 1};
  EXPECT_FALSE(ToProto(report).has_plan());
  report.new_plan = {.effective_batch = 16, .micro_batch = 4};
  report.memory_records = {{.stage = "Training Start", .sequence = 3}};
  const v1::ReportMeasurementsRequest proto = ToProto(report);
  EXPECT_EQ(proto.plan().micro_batch(), 4);
  EXPECT_EQ(proto.num_ooms(), 1);
  ASSERT_EQ(proto.measurements_size(), 1);
  EXPECT_EQ(proto.measurements(0).step(), 5);
  EXPECT_EQ(proto.measurements(0).metrics().at("loss"), 2.0);
  ASSERT_EQ(proto.memory_records_size(), 1);
  EXPECT_EQ(proto.memory_records(0).sequence(), 3);
}

TEST(ConvertWorker, AFinishCarriesOutcomeMemoryAndPlan) {
  FinishRequest finish{.lease = Lease()};
  finish.outcome = Failed{.failure_class = FailureClass::kBadData, .message = "line 3"};
  finish.memory.live_peak = MiB(5);
  finish.final_plan = {.effective_batch = 16, .micro_batch = 4};
  finish.measurements = {{.step = 9}};
  finish.memory_records = {{.stage = "Trial Success"}};
  finish.log_tail = "the end\n";
  const v1::FinishTrialRequest proto = ToProto(finish);
  EXPECT_EQ(proto.outcome().failed().failure_class(), v1::FAILURE_CLASS_BAD_DATA);
  EXPECT_EQ(proto.outcome().failed().message(), "line 3");
  EXPECT_EQ(proto.memory().live_peak_bytes(), 5 << 20);
  EXPECT_EQ(proto.final_plan().micro_batch(), 4);
  EXPECT_EQ(proto.measurements(0).step(), 9);
  EXPECT_EQ(proto.memory_records(0).stage(), "Trial Success");
  EXPECT_EQ(proto.log_tail(), "the end\n");
}

TEST(ConvertWorker, AReleaseSaysWhyAndHowMuch) {
  const v1::ReleaseTrialRequest proto = ToProto(TrialRelease{.lease = Lease(),
                                                             .reason = ReleaseReason::kRejected,
                                                             .needed = GiB(9),
                                                             .note = "needs 9 GiB",
                                                             .log_tail = "epoch 2\n"});
  EXPECT_EQ(proto.reason(), v1::RELEASE_REASON_REJECTED);
  EXPECT_EQ(proto.needed_bytes(), int64_t{9} << 30);
  EXPECT_EQ(proto.note(), "needs 9 GiB");
  EXPECT_EQ(proto.log_tail(), "epoch 2\n");
}

TEST(ConvertWorker, APreflightIsAnAssignmentAndOtherGpus) {
  v1::AcquirePreflightResponse proto;
  EXPECT_EQ(FromProto(proto)->has_value(), false);
  v1::Preflight& asked = *proto.mutable_preflight();
  asked.set_id("p1");
  *asked.mutable_assignment() = WireAssignment();
  asked.add_others()->set_capability("8.6");
  const absl::StatusOr<std::optional<Preflight>> preflight = FromProto(proto);
  ASSERT_TRUE(preflight.ok()) << preflight.status();
  EXPECT_EQ((*preflight)->id, "p1");
  EXPECT_EQ((*preflight)->assignment.lease.trial.study, "criteria");
  EXPECT_EQ((*preflight)->others.at(0).capability, "8.6");
}

TEST(ConvertWorker, ADryRunSaysWhatEachGpuRequires) {
  const v1::ReportPreflightRequest proto =
      ToProto(PreflightReport{.id = "p1",
                              .needs = {{.capability = "8.6",
                                         .threads = 43008,
                                         .state = PreflightState::kMeasured,
                                         .required = GiB(9),
                                         .margin = MiB(502)},
                                        {.state = PreflightState::kUncertain},
                                        {.state = PreflightState::kFailed}},
                              .took = absl::Milliseconds(8500),
                              .message = std::string(10'000, 'x')});
  EXPECT_EQ(proto.id(), "p1");
  ASSERT_EQ(proto.needs_size(), 3);
  EXPECT_EQ(proto.needs(0).capability(), "8.6");
  EXPECT_EQ(proto.needs(0).threads(), 43008);
  EXPECT_EQ(proto.needs(0).state(), v1::PREFLIGHT_STATE_MEASURED);
  EXPECT_EQ(proto.needs(0).required_bytes(), int64_t{9} << 30);
  EXPECT_EQ(proto.needs(0).margin_bytes(), int64_t{502} << 20);
  EXPECT_EQ(proto.needs(1).state(), v1::PREFLIGHT_STATE_UNCERTAIN);
  EXPECT_EQ(proto.needs(2).state(), v1::PREFLIGHT_STATE_FAILED);
  EXPECT_EQ(proto.took().seconds(), 8);
  EXPECT_LE(proto.message().size(), 4096u);
}

TEST(ConvertWorker, DirectivesArriveInOrder) {
  v1::HeartbeatResponse proto;
  proto.add_directives(v1::DIRECTIVE_CONTINUE);
  proto.add_directives(v1::DIRECTIVE_STOP_PRUNED);
  proto.add_directives(v1::DIRECTIVE_LEASE_LOST);
  proto.add_directives(v1::DIRECTIVE_CANCELLED);
  proto.add_directives(static_cast<v1::Directive>(77));
  proto.add_directives(v1::DIRECTIVE_TIME_LIMIT);
  proto.mutable_next()->set_nanos(500'000'000);
  proto.set_register_again(true);
  const HeartbeatResult result = FromProto(proto);
  EXPECT_THAT(result.directives,
              ElementsAre(Directive::kContinue, Directive::kStopPruned, Directive::kLeaseLost,
                          Directive::kCancelled, Directive::kContinue, Directive::kTimeLimit));
  EXPECT_EQ(result.next, absl::Milliseconds(500));
  EXPECT_TRUE(result.register_again);
}

TEST(ConvertWorker, SmallAnswers) {
  v1::RegisterWorkerResponse registered;
  registered.set_session("s1");
  registered.mutable_heartbeat_interval()->set_seconds(10);
  registered.set_studies_version(5);
  const Registration registration = FromProto(registered);
  EXPECT_EQ(registration.session, "s1");
  EXPECT_EQ(registration.heartbeat_interval, absl::Seconds(10));
  EXPECT_EQ(registration.studies_version, 5);

  v1::ReportMeasurementsResponse reported;
  reported.set_should_stop(true);
  reported.set_pruner("median");
  reported.set_why("below");
  EXPECT_EQ(FromProto(reported).directive, Directive::kContinue) << "an older server";
  reported.set_directive(v1::DIRECTIVE_CANCELLED);
  EXPECT_EQ(FromProto(reported).directive, Directive::kCancelled);
  EXPECT_TRUE(FromProto(reported).should_stop);
  EXPECT_EQ(FromProto(reported).pruner, "median");
  EXPECT_EQ(FromProto(reported).why, "below");

  v1::FinishTrialResponse finished;
  EXPECT_FALSE(FromProto(finished).ok());  // no state
  finished.set_state(v1::TRIAL_STATE_PRUNED);
  finished.set_stored(true);
  EXPECT_EQ(FromProto(finished)->state, TrialState::kPruned);
  EXPECT_TRUE(FromProto(finished)->stored);
}

}  // namespace
}  // namespace hpo::agent
