#include "proto/convert/trial_proto.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "proto/convert/enum_pairs.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/time_proto.h"

namespace hpo {
namespace {

constexpr EnumPairs<TrialState, v1::TrialState, 6> kTrialStates = {{
    {TrialState::kQueued, v1::TRIAL_STATE_QUEUED},
    {TrialState::kRunning, v1::TRIAL_STATE_RUNNING},
    {TrialState::kCompleted, v1::TRIAL_STATE_COMPLETED},
    {TrialState::kPruned, v1::TRIAL_STATE_PRUNED},
    {TrialState::kFailed, v1::TRIAL_STATE_FAILED},
    {TrialState::kCancelled, v1::TRIAL_STATE_CANCELLED},
}};

constexpr EnumPairs<PruneReason, v1::PruneReason, 4> kPruneReasons = {{
    {PruneReason::kOutOfMemory, v1::PRUNE_REASON_OUT_OF_MEMORY},
    {PruneReason::kPredictedOutOfMemory, v1::PRUNE_REASON_PREDICTED_OUT_OF_MEMORY},
    {PruneReason::kHostOutOfMemory, v1::PRUNE_REASON_HOST_OUT_OF_MEMORY},
    {PruneReason::kPruner, v1::PRUNE_REASON_PRUNER},
}};

constexpr EnumPairs<AttemptState, v1::AttemptState, 6> kAttemptStates = {{
    {AttemptState::kLeased, v1::ATTEMPT_STATE_LEASED},
    {AttemptState::kSuspect, v1::ATTEMPT_STATE_SUSPECT},
    {AttemptState::kFinished, v1::ATTEMPT_STATE_FINISHED},
    {AttemptState::kReleased, v1::ATTEMPT_STATE_RELEASED},
    {AttemptState::kLost, v1::ATTEMPT_STATE_LOST},
    {AttemptState::kSuperseded, v1::ATTEMPT_STATE_SUPERSEDED},
}};

bool IsSet(absl::Time time) { return time != absl::InfinitePast(); }

void SetOutcome(const TrialOutcome& outcome, const ParamMap& params, v1::Trial& proto) {
  *proto.mutable_outcome() = ToProto(outcome);
  if (const auto reason = PruneReasonOf(outcome)) proto.set_prune_reason(ToProto(*reason));
  if (!proto.outcome().has_out_of_memory()) return;
  const absl::StatusOr<ParamMap> config = ParamsFromJson(OomConfig(params));
  HPO_CHECK(config.ok());
  *proto.mutable_outcome()->mutable_out_of_memory()->mutable_oom_config() = ToProto(*config);
}

}  // namespace

v1::TrialState ToProto(TrialState state) { return ToWire(kTrialStates, state); }

absl::StatusOr<TrialState> FromProto(v1::TrialState proto) {
  return FromWire(kTrialStates, proto, "a trial state");
}

v1::PruneReason ToProto(PruneReason reason) { return ToWire(kPruneReasons, reason); }

absl::StatusOr<PruneReason> FromProto(v1::PruneReason proto) {
  return FromWire(kPruneReasons, proto, "a prune reason");
}

v1::Attempt ToProto(const Attempt& attempt) {
  v1::Attempt proto;
  proto.set_number(attempt.number.value);
  proto.set_state(ToWire(kAttemptStates, attempt.state));
  proto.set_worker(attempt.worker);
  proto.set_capacity_bytes(attempt.capacity.count);
  proto.set_predicted_bytes(attempt.predicted.count);
  *proto.mutable_plan() = ToProto(attempt.plan);
  if (attempt.final_plan) *proto.mutable_final_plan() = ToProto(*attempt.final_plan);
  if (attempt.memory) *proto.mutable_memory() = ToProto(*attempt.memory);
  proto.set_end_note(attempt.end_note);
  if (IsSet(attempt.started)) *proto.mutable_started() = ToProto(attempt.started);
  if (IsSet(attempt.ended)) *proto.mutable_ended() = ToProto(attempt.ended);
  for (const MemoryRecord& record : attempt.memory_records) {
    *proto.add_memory_records() = ToProto(record);
  }
  return proto;
}

absl::StatusOr<Attempt> FromProto(const v1::Attempt& proto) {
  Attempt attempt{.number = AttemptNumber{proto.number()},
                  .worker = proto.worker(),
                  .capacity = Bytes{proto.capacity_bytes()},
                  .predicted = Bytes{proto.predicted_bytes()},
                  .end_note = proto.end_note()};
  HPO_ASSIGN_OR_RETURN(attempt.state, FromWire(kAttemptStates, proto.state(), "an attempt state"));
  HPO_ASSIGN_OR_RETURN(attempt.plan, FromProto(proto.plan()));
  if (proto.has_final_plan()) {
    HPO_ASSIGN_OR_RETURN(attempt.final_plan, FromProto(proto.final_plan()));
  }
  if (proto.has_memory()) attempt.memory = FromProto(proto.memory());
  if (proto.has_started()) attempt.started = FromProto(proto.started());
  if (proto.has_ended()) attempt.ended = FromProto(proto.ended());
  for (const v1::MemoryRecord& record : proto.memory_records()) {
    HPO_ASSIGN_OR_RETURN(attempt.memory_records.emplace_back(), FromProto(record));
  }
  return attempt;
}

v1::Trial ToProto(const Trial& trial) {
  v1::Trial proto;
  proto.set_study(trial.id.study);
  proto.set_number(trial.id.number.value);
  proto.set_state(ToProto(trial.state));
  *proto.mutable_params() = ToProto(trial.params);
  proto.set_demonstration(trial.demonstration);
  proto.set_origin(trial.origin);
  proto.set_outside_budget(!trial.budgeted);
  proto.set_admission(trial.admission);
  proto.set_forced_micro_batch(trial.forced_micro_batch);
  proto.set_min_capacity_bytes(trial.min_capacity.count);
  if (trial.outcome) SetOutcome(*trial.outcome, trial.params, proto);
  for (const Attempt& attempt : trial.attempts) *proto.add_attempts() = ToProto(attempt);
  if (trial.last_measurement) {
    *proto.mutable_last_measurement() = ToProto(*trial.last_measurement);
  }
  if (trial.value) proto.set_value(*trial.value);
  proto.set_violation(trial.violation);
  *proto.mutable_attributes() = ToProto(trial.attributes);
  if (IsSet(trial.created)) *proto.mutable_created() = ToProto(trial.created);
  if (IsSet(trial.started)) *proto.mutable_started() = ToProto(trial.started);
  if (IsSet(trial.ended)) *proto.mutable_ended() = ToProto(trial.ended);
  return proto;
}

absl::StatusOr<Trial> FromProto(const v1::Trial& proto) {
  Trial trial{.id = {.study = proto.study(), .number = TrialNumber{proto.number()}},
              .demonstration = proto.demonstration(),
              .origin = proto.origin(),
              .budgeted = !proto.outside_budget(),
              .admission = proto.admission(),
              .forced_micro_batch = proto.forced_micro_batch(),
              .min_capacity = Bytes{proto.min_capacity_bytes()}};
  HPO_ASSIGN_OR_RETURN(trial.state, FromProto(proto.state()));
  HPO_ASSIGN_OR_RETURN(trial.params, FromProto(proto.params()));
  if (proto.has_outcome()) {
    HPO_ASSIGN_OR_RETURN(trial.outcome, FromProto(proto.outcome()));
  }
  for (const v1::Attempt& attempt : proto.attempts()) {
    HPO_ASSIGN_OR_RETURN(trial.attempts.emplace_back(), FromProto(attempt));
  }
  if (proto.has_last_measurement()) trial.last_measurement = FromProto(proto.last_measurement());
  if (proto.has_value()) trial.value = proto.value();
  trial.violation = proto.violation();
  trial.attributes = FromProto(proto.attributes());
  if (proto.has_created()) trial.created = FromProto(proto.created());
  if (proto.has_started()) trial.started = FromProto(proto.started());
  if (proto.has_ended()) trial.ended = FromProto(proto.ended());
  return trial;
}

v1::ImportedTrial ToProto(const ImportedTrial& trial) {
  v1::ImportedTrial proto;
  proto.set_origin(trial.origin);
  *proto.mutable_params() = ToProto(trial.params);
  *proto.mutable_outcome() = ToProto(trial.outcome);
  for (const Measurement& measurement : trial.measurements) {
    *proto.add_measurements() = ToProto(measurement);
  }
  proto.set_demonstration(trial.demonstration);
  if (IsSet(trial.started)) *proto.mutable_started() = ToProto(trial.started);
  if (IsSet(trial.ended)) *proto.mutable_ended() = ToProto(trial.ended);
  *proto.mutable_attributes() = ToProto(trial.attributes);
  return proto;
}

absl::StatusOr<ImportedTrial> FromProto(const v1::ImportedTrial& proto) {
  if (proto.origin().empty()) {
    return absl::InvalidArgumentError("origin: expected where the trial comes from, got nothing");
  }
  ImportedTrial trial{.origin = proto.origin(), .demonstration = proto.demonstration()};
  const auto convert = [&]() -> absl::Status {
    HPO_ASSIGN_OR_RETURN(trial.params, FromProto(proto.params()));
    HPO_ASSIGN_OR_RETURN(trial.outcome, FromProto(proto.outcome()));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(Annotate(convert(), trial.origin));
  for (const v1::Measurement& measurement : proto.measurements()) {
    trial.measurements.push_back(FromProto(measurement));
  }
  trial.attributes = FromProto(proto.attributes());
  if (proto.has_started()) trial.started = FromProto(proto.started());
  if (proto.has_ended()) trial.ended = FromProto(proto.ended());
  return trial;
}

}  // namespace hpo
