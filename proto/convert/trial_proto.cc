#include "proto/convert/trial_proto.h"

#include <utility>

#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "proto/convert/outcome_proto.h"

namespace hpo {

v1::TrialState ToProto(TrialState state) { return ToWire<v1::TrialState>(state); }

absl::StatusOr<TrialState> FromProto(v1::TrialState proto) { return FromWire<TrialState>(proto); }

v1::Trial ToProto(const Trial& trial) {
  v1::Trial proto = ToMessage<v1::Trial>(trial);
  proto.set_outside_budget(!trial.budgeted);
  for (const Attempt& attempt : trial.attempts) {
    *proto.add_attempts() = ToMessage<v1::Attempt>(attempt);
  }
  if (!trial.outcome) return proto;
  if (const auto reason = PruneReasonOf(*trial.outcome)) {
    proto.set_prune_reason(ToWire<v1::PruneReason>(*reason));
  }
  if (!proto.outcome().has_out_of_memory()) return proto;
  const absl::StatusOr<ParamMap> config = ParamsFromJson(OomConfig(trial.params));
  HPO_CHECK(config.ok());
  *proto.mutable_outcome()->mutable_out_of_memory()->mutable_oom_config() = ToProto(*config);
  return proto;
}

absl::StatusOr<Trial> FromProto(const v1::Trial& proto) {
  HPO_ASSIGN_OR_RETURN(Trial trial, FromMessage<Trial>(proto));
  trial.budgeted = !proto.outside_budget();
  for (const v1::Attempt& attempt : proto.attempts()) {
    HPO_ASSIGN_OR_RETURN(trial.attempts.emplace_back(), FromMessage<Attempt>(attempt));
  }
  return trial;
}

v1::Trial ToProto(const TrialView& view) {
  v1::Trial proto = ToProto(view.trial);
  for (const Measurement& measurement : view.measurements) {
    *proto.add_measurements() = ToProto(measurement);
  }
  proto.set_sampler(view.sampler);
  return proto;
}

absl::StatusOr<TrialView> ViewFromProto(const v1::Trial& proto) {
  TrialView view{.trial = {}, .measurements = {}, .sampler = proto.sampler()};
  HPO_ASSIGN_OR_RETURN(view.trial, FromProto(proto));
  for (const v1::Measurement& measurement : proto.measurements()) {
    view.measurements.push_back(FromProto(measurement));
  }
  return view;
}

void VisitFields(Is<ImportedTrial> auto& trial, auto visit) {
  visit({"origin"}, trial.origin);
  visit({"params"}, trial.params);
  visit({"outcome"}, trial.outcome);
  visit({"measurements"}, trial.measurements);
  visit({"demonstration"}, trial.demonstration);
  visit({"started"}, trial.started);
  visit({"ended"}, trial.ended);
  visit({"attributes"}, trial.attributes);
}

v1::ImportedTrial ToProto(const ImportedTrial& trial) {
  return ToMessage<v1::ImportedTrial>(trial);
}

absl::StatusOr<ImportedTrial> FromProto(const v1::ImportedTrial& proto) {
  if (proto.origin().empty()) {
    return absl::InvalidArgumentError("origin: expected where the trial comes from, got nothing");
  }
  absl::StatusOr<ImportedTrial> trial = FromMessage<ImportedTrial>(proto);
  if (!trial.ok()) return Annotate(trial.status(), proto.origin());
  return trial;
}

}  // namespace hpo
