// What an attempt tells of itself, between value types (common/study/trial.h) and the wire: plan,
// measurements, memory report and records, outcome. Conventions: params_proto.h.
#pragma once

#include "absl/status/statusor.h"
#include "common/study/trial_fields.h"
#include "hpo/v1/trial.pb.h"
#include "proto/convert/message_fields.h"

namespace hpo {

// Checked: 1 <= micro_batch <= effective_batch. An unspecified precision is float32.
v1::MemoryPlan ToProto(const MemoryPlan& plan);
absl::StatusOr<MemoryPlan> FromProto(const v1::MemoryPlan& proto);

v1::Measurement ToProto(const Measurement& measurement);
Measurement FromProto(const v1::Measurement& proto);

v1::MemoryRecord ToProto(const MemoryRecord& record);
//   InvalidArgument  no stage, a plan that is none
absl::StatusOr<MemoryRecord> FromProto(const v1::MemoryRecord& proto);

v1::Outcome ToProto(const TrialOutcome& outcome);
absl::StatusOr<TrialOutcome> FromProto(const v1::Outcome& proto);

template <>
struct MessageForm<MemoryPlan> {
  using Wire = v1::MemoryPlan;
  static absl::StatusOr<MemoryPlan> Read(const Wire& proto) { return FromProto(proto); }
};
template <>
struct MessageForm<MemoryRecord> {
  using Wire = v1::MemoryRecord;
  static absl::StatusOr<MemoryRecord> Read(const Wire& proto) { return FromProto(proto); }
};
template <>
struct MessageForm<TrialOutcome> {
  using Wire = v1::Outcome;
  static Wire Write(const TrialOutcome& outcome) { return ToProto(outcome); }
  static absl::StatusOr<TrialOutcome> Read(const Wire& proto) { return FromProto(proto); }
};

}  // namespace hpo
