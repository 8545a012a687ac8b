// Trials and attempts between their value types (common/study/trial.h) and the wire. Conventions:
// params_proto.h.
#pragma once

#include "absl/status/statusor.h"
#include "common/study/imported_trial.h"
#include "common/study/trial.h"
#include "common/study/trial_view.h"
#include "hpo/v1/trial.pb.h"
#include "proto/convert/message_fields.h"

namespace hpo {

v1::TrialState ToProto(TrialState state);
absl::StatusOr<TrialState> FromProto(v1::TrialState proto);

// Everything of the trial, its attempts included; an out-of-memory outcome also carries oom_config,
// which follows from the parameters. `measurements` and `sampler` are those of a TrialView.
v1::Trial ToProto(const Trial& trial);
absl::StatusOr<Trial> FromProto(const v1::Trial& proto);
v1::Trial ToProto(const TrialView& view);
absl::StatusOr<TrialView> ViewFromProto(const v1::Trial& proto);

// A set origin is checked, and that there is an outcome.
v1::ImportedTrial ToProto(const ImportedTrial& trial);
absl::StatusOr<ImportedTrial> FromProto(const v1::ImportedTrial& proto);

template <>
struct MessageForm<Trial> {
  using Wire = v1::Trial;
  static Wire Write(const Trial& trial) { return ToProto(trial); }
  static absl::StatusOr<Trial> Read(const Wire& proto) { return FromProto(proto); }
};

}  // namespace hpo
