#include "proto/convert/trial_proto.h"

#include <gtest/gtest.h>

#include "common/study/trial_fields.h"

namespace hpo {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

Attempt FullAttempt() {
  return Attempt{.number = AttemptNumber{2},
                 .state = AttemptState::kFinished,
                 .worker = "host:gpu0",
                 .capacity = GiB(8),
                 .predicted = GiB(6),
                 .plan = {.effective_batch = 64, .micro_batch = 16},
                 .final_plan = MemoryPlan{.effective_batch = 64, .micro_batch = 8},
                 .memory = MemoryReport{.live_peak = GiB(5), .num_ooms = 1, .num_replans = 1},
                 .end_note = "note",
                 .log_tail = "epoch 1\nepoch 2\n",
                 .started = kStart,
                 .ended = kStart + absl::Seconds(90)};
}

Trial FullTrial() {
  return Trial{.id = {.study = "criteria", .number = TrialNumber{7}},
               .state = TrialState::kPruned,
               .params = {{"model.name", std::string("bert-base-uncased")},
                          {"train.batch_size", int64_t{16}},
                          {"train.grad_accum", int64_t{4}},
                          {"tok.max_length", int64_t{256}}},
               .demonstration = true,
               .origin = "optuna:old#3",
               .budgeted = false,
               .admission = false,
               .forced_micro_batch = 16,
               .min_capacity = GiB(4),
               .outcome = OutOfMemory{.limit = GiB(8), .phase = "forward"},
               .attempts = {Attempt{.end_note = "lost"}, FullAttempt()},
               .last_measurement = Measurement{.step = 3, .epoch = 0.5, .metrics = {{"loss", 1.0}}},
               .value = 0.5,
               .created = kStart,
               .started = kStart + absl::Seconds(1),
               .ended = kStart + absl::Seconds(100)};
}

void ExpectSame(const Attempt& a, const Attempt& b) {
  EXPECT_EQ(a.number, b.number);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.worker, b.worker);
  EXPECT_EQ(a.capacity, b.capacity);
  EXPECT_EQ(a.predicted, b.predicted);
  EXPECT_EQ(a.plan, b.plan);
  EXPECT_EQ(a.final_plan, b.final_plan);
  EXPECT_EQ(a.memory, b.memory);
  EXPECT_EQ(a.end_note, b.end_note);
  EXPECT_EQ(a.log_tail, b.log_tail);
  EXPECT_EQ(a.started, b.started);
  EXPECT_EQ(a.ended, b.ended);
}

void ExpectSame(const Trial& a, const Trial& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.state, b.state);
  EXPECT_EQ(a.params, b.params);
  EXPECT_EQ(a.demonstration, b.demonstration);
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_EQ(a.budgeted, b.budgeted);
  EXPECT_EQ(a.admission, b.admission);
  EXPECT_EQ(a.forced_micro_batch, b.forced_micro_batch);
  EXPECT_EQ(a.min_capacity, b.min_capacity);
  EXPECT_EQ(a.outcome, b.outcome);
  EXPECT_EQ(a.last_measurement, b.last_measurement);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.created, b.created);
  EXPECT_EQ(a.started, b.started);
  EXPECT_EQ(a.ended, b.ended);
  ASSERT_EQ(a.attempts.size(), b.attempts.size());
  for (size_t i = 0; i < a.attempts.size(); ++i) ExpectSame(a.attempts[i], b.attempts[i]);
}

TEST(TrialProto, AFullAndAnEmptyTrialRoundTrip) {
  for (const Trial& trial : {FullTrial(), Trial()}) {
    const absl::StatusOr<Trial> back = FromProto(ToProto(trial));
    ASSERT_TRUE(back.ok()) << back.status();
    ExpectSame(*back, trial);
  }
}

TEST(TrialProto, EveryStateRoundTrips) {
  for (int state = 0; state < 6; ++state) {
    const TrialState trial_state = static_cast<TrialState>(state);
    EXPECT_EQ(FromWire<TrialState>(ToWire<v1::TrialState>(trial_state)).value(), trial_state);
    const Attempt attempt{.state = static_cast<AttemptState>(state)};
    EXPECT_EQ(FromMessage<Attempt>(ToMessage<v1::Attempt>(attempt))->state, attempt.state);
  }
  for (int reason = 0; reason < 4; ++reason) {
    const PruneReason prune_reason = static_cast<PruneReason>(reason);
    EXPECT_EQ(FromWire<PruneReason>(ToWire<v1::PruneReason>(prune_reason)).value(), prune_reason);
  }
}

TEST(TrialProto, APrunedTrialSaysWhyAndShowsItsConfiguration) {
  const v1::Trial proto = ToProto(FullTrial());
  EXPECT_EQ(proto.prune_reason(), v1::PRUNE_REASON_OUT_OF_MEMORY);
  const auto& config = proto.outcome().out_of_memory().oom_config();
  EXPECT_EQ(config.at("model").string_value(), "bert-base-uncased");
  EXPECT_EQ(config.at("batch_size").int_value(), 16);
  EXPECT_EQ(config.at("effective_batch_size").int_value(), 64);
}

TEST(TrialProto, WhatHasNotHappenedIsAbsent) {
  const v1::Trial proto = ToProto(Trial());
  EXPECT_FALSE(proto.has_created());
  EXPECT_FALSE(proto.has_ended());
  EXPECT_FALSE(proto.has_outcome());
  EXPECT_FALSE(proto.has_value());
  EXPECT_EQ(proto.prune_reason(), v1::PRUNE_REASON_UNSPECIFIED);
}

TEST(TrialProto, AnUnknownStateIsRefused) {
  v1::Trial trial = ToProto(FullTrial());
  trial.set_state(static_cast<v1::TrialState>(99));
  EXPECT_EQ(FromProto(trial).status().message(), "expected a trial state, got 99");
  v1::Trial broken_attempt = ToProto(FullTrial());
  broken_attempt.mutable_attempts(0)->clear_state();
  EXPECT_EQ(FromProto(broken_attempt).status().message(), "expected an attempt state, got 0");
}

TEST(ImportedTrialProto, ComesBack) {
  const ImportedTrial trial{.origin = "optuna:old#3",
                            .params = {{"lr", 0.5}, {"model", std::string("a")}},
                            .outcome = Completed{.metrics = {{"f1", 0.5}}},
                            .measurements = {{.step = 1, .metrics = {{"f1", 0.25}}}},
                            .demonstration = true,
                            .started = kStart,
                            .ended = kStart + absl::Seconds(5)};
  EXPECT_EQ(FromProto(ToProto(trial)).value(), trial);
  const ImportedTrial least{.origin = "x", .outcome = Cancelled{}};
  EXPECT_EQ(FromProto(ToProto(least)).value(), least);
}

TEST(ImportedTrialProto, WithoutOriginOrOutcomeItIsNone) {
  v1::ImportedTrial proto = ToProto(ImportedTrial{.origin = "optuna:old#3"});
  proto.clear_outcome();
  EXPECT_EQ(FromProto(proto).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(FromProto(proto).status().message().find("optuna:old#3"), absl::string_view::npos);
  proto = ToProto(ImportedTrial{.origin = "x"});
  proto.clear_origin();
  EXPECT_EQ(FromProto(proto).status().message(),
            "origin: expected where the trial comes from, got nothing");
}

}  // namespace
}  // namespace hpo
