// Trials and attempts between their value types (common/study/trial.h) and the wire. Conventions:
// params_proto.h.
#pragma once

#include "absl/status/statusor.h"
#include "common/study/imported_trial.h"
#include "common/study/trial.h"
#include "hpo/v1/trial.pb.h"

namespace hpo {

v1::TrialState ToProto(TrialState state);
absl::StatusOr<TrialState> FromProto(v1::TrialState proto);
v1::PruneReason ToProto(PruneReason reason);
absl::StatusOr<PruneReason> FromProto(v1::PruneReason proto);

v1::Attempt ToProto(const Attempt& attempt);
absl::StatusOr<Attempt> FromProto(const v1::Attempt& proto);

// Everything of the trial, its attempts included; an out-of-memory outcome also carries oom_config,
// which follows from the parameters. `measurements` and `sampler` stay empty: they are no part of
// the value type.
v1::Trial ToProto(const Trial& trial);
absl::StatusOr<Trial> FromProto(const v1::Trial& proto);

// A set origin is checked, and that there is an outcome.
v1::ImportedTrial ToProto(const ImportedTrial& trial);
absl::StatusOr<ImportedTrial> FromProto(const v1::ImportedTrial& proto);

}  // namespace hpo
