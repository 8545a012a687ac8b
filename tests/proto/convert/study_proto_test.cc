#include "proto/convert/study_proto.h"

#include <gtest/gtest.h>

#include "common/study/study_fields.h"

namespace hpo {
namespace {

SearchSpace FullSpace() {
  return SearchSpace{
      .parameters =
          {{.name = "model.name",
            .domain = CategoricalDomain{.choices = {std::string("a"), std::string("b")}},
            .default_value = ParamValue(std::string("a"))},
           {.name = "head.layers", .domain = IntDomain{.low = 0, .high = 3}},
           {.name = "head.size_1",
            .domain = IntDomain{.low = 64, .high = 512, .step = 64},
            .when = {{.name = "head.layers", .values = {int64_t{1}, int64_t{2}, int64_t{3}}}}},
           {.name = "train.lr", .domain = FloatDomain{.low = 1e-6, .high = 1e-4, .log = true}},
           {.name = "dropout", .domain = FloatDomain{.low = 0.0, .high = 0.5, .step = 0.1}},
           {.name = "seed", .domain = IntDomain{.low = 1, .high = 65535}, .modelled = false}},
      .narrowings = {{.when = {{.name = "model.class", .values = {std::string("heavy")}}},
                      .name = "head.size_1",
                      .domain = IntDomain{.low = 64, .high = 128, .step = 64}}}};
}

StudyStatus FullStatus() {
  StudyStatus status{.finished = true,
                     .order = StudyOrder::kPause,
                     .failure = "5 trials failed\nValueError",
                     .counts = {.queued = 1,
                                .running = 2,
                                .completed = 3,
                                .pruned = 4,
                                .failed = 5,
                                .cancelled = 6,
                                .oom_met = 7,
                                .oom_predicted = 8,
                                .oom_recovered = 9,
                                .demonstration = 10,
                                .imported = 11},
                     .best_trial = TrialNumber{4},
                     .best_value = 0.713,
                     .wall_clock_used = absl::Minutes(3),
                     .waiting_for = "workers: hpo-worker --gpu 0",
                     .blocked = true,
                     .runnable = 12,
                     .created = absl::FromUnixSeconds(1'700'000'000),
                     .sequence = 42};
  status.workers = {{.name = "host:cpu",
                     .device = "cpu",
                     .capacity = GiB(2),
                     .alive = true,
                     .trial = TrialId{.study = "criteria", .number = TrialNumber{8}},
                     .last_heartbeat = absl::FromUnixSeconds(1'700'000'001),
                     .notice = "one result is set aside",
                     .drained = true,
                     .allocated = MiB(300),
                     .reserved = MiB(400),
                     .step = 17,
                     .stage = "Training Start",
                     .trial_started = absl::FromUnixSeconds(1'700'000'000),
                     .gpus = 2},
                    {.name = "gone", .idle_because = "drained; to go on: hpo worker resume gone"}};
  status.spec.name = "criteria";
  status.spec.objectives = {{.metric = "macro_f1", .direction = Direction::kMaximize},
                            {.metric = "loss", .direction = Direction::kMinimize}};
  status.spec.budget = {.trials = 12,
                        .wall_clock = absl::Hours(2),
                        .trial_wall_clock = absl::Minutes(9),
                        .no_progress = 30,
                        .regret_bound = RegretBound{.gap = 0.25},
                        .target = 0.0,
                        .failures_in_a_row = 3,
                        .failed_share = 0.5};
  status.priors = {{.study = "first",
                    .num_trials = 40,
                    .num_skipped = 2,
                    .why_skipped = "trial #3: train.lr: expected less"}};
  status.dry_runs = DryRunCounts{.made = 9,
                                 .refused = 4,
                                 .uncertain = 1,
                                 .failed = 2,
                                 .took = absl::Seconds(80),
                                 .saved = absl::Minutes(12),
                                 .trouble = "w makes no more"};
  status.last_proposal = "trial #7: tpe, prior first 0.71, score 0.5";
  status.spec.trainer.train = "train.jsonl";
  status.spec.trainer.validation = "valid.jsonl";
  status.spec.sampler = {.type = "random", .seed = 17};
  status.spec.pruner.type = "none";
  status.spec.memory.policy = MemoryPolicy::kStrict;
  status.spec.space = FullSpace();
  return status;
}

TEST(StudyProto, AFullStatusRoundTrips) {
  const absl::StatusOr<StudyStatus> back = FromProto(ToProto(FullStatus()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, FullStatus());
}

TEST(StudyProto, HoursByUseRoundTripEachByItself) {
  const TimeByUse uses{.useful = absl::Hours(1),
                       .out_of_memory = absl::Minutes(2),
                       .pruned = absl::Minutes(3),
                       .failed = absl::Minutes(4),
                       .cancelled = absl::Minutes(5),
                       .preempted = absl::Minutes(6),
                       .lost = absl::Milliseconds(1500)};
  StudyStatus status = FullStatus();
  status.time_by_use = uses;
  const v1::Study proto = ToProto(status);
  EXPECT_EQ(proto.time_by_use().useful().seconds(), 3600);
  EXPECT_EQ(proto.time_by_use().lost().nanos(), 500'000'000);
  EXPECT_EQ(FromProto(proto)->time_by_use, uses);
  status.time_by_use.reset();
  EXPECT_FALSE(ToProto(status).has_time_by_use());
}

TEST(StudyProto, AFreshStatusRoundTrips) {
  StudyStatus status;
  status.spec.name = "new";
  const absl::StatusOr<StudyStatus> back = FromProto(ToProto(status));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, status);
  EXPECT_FALSE(ToProto(status).has_best_trial());
  EXPECT_FALSE(ToProto(status).budget().has_trials());
}

TEST(StudyProto, ABoundByTheNoiseRoundTrips) {
  const Budget budget{.regret_bound = RegretBound{}};
  EXPECT_EQ(FromProto(ToProto(budget)), budget);
}

TEST(StudyProto, AServerThatKnowsNoOrdersRunsItsStudies) {
  v1::Study proto = ToProto(FullStatus());
  proto.clear_order();
  proto.clear_failure();
  proto.mutable_budget()->clear_failures_in_a_row();
  const absl::StatusOr<StudyStatus> study = FromProto(proto);
  ASSERT_TRUE(study.ok()) << study.status();
  EXPECT_EQ(study->order, StudyOrder::kRun);
  EXPECT_EQ(study->failure, "");
  EXPECT_EQ(study->spec.budget.failures_in_a_row, Budget().failures_in_a_row);
}

TEST(StudyProto, EveryDomainRoundTrips) {
  for (const Parameter& parameter : FullSpace().parameters) {
    SCOPED_TRACE(parameter.name);
    EXPECT_EQ(FromProto(ToProto(parameter.domain)).value(), parameter.domain);
  }
}

TEST(StudyProto, AnIntegerStepMayBeLeftOut) {
  v1::Domain proto;
  proto.mutable_int_domain()->set_high(3);
  EXPECT_EQ(std::get<IntDomain>(FromProto(proto).value()).step, 1);
}

TEST(StudyProto, WhatSaysNothingIsRefused) {
  EXPECT_FALSE(FromProto(v1::Domain()).ok());
  EXPECT_FALSE(FromMessage<Objective>(v1::Objective()).ok());
  v1::SearchSpace space;
  space.add_parameters()->set_name("x");
  EXPECT_EQ(FromProto(space).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StudyProto, PoliciesHaveNames) {
  for (const MemoryPolicy policy :
       {MemoryPolicy::kPlan, MemoryPolicy::kStrict, MemoryPolicy::kOff}) {
    StudyStatus study = FullStatus();
    study.spec.memory.policy = policy;
    EXPECT_EQ(FromProto(ToProto(study)).value().spec.memory.policy, policy);
  }
  v1::Study unknown = ToProto(FullStatus());
  unknown.set_memory_policy("none");
  EXPECT_EQ(FromProto(unknown).status().message(),
            "expected a memory policy: plan, strict or off, got 'none'");
}

}  // namespace
}  // namespace hpo
