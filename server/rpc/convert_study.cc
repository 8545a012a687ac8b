// Tested by tests/server/rpc/rpc_server_test.cc.
#include "server/rpc/convert_study.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/study_file/study_file.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/params_proto.h"
#include "proto/convert/study_proto.h"
#include "proto/convert/time_proto.h"
#include "proto/convert/trial_proto.h"

namespace hpo::server {

absl::StatusOr<StudyUpdate> FromProto(const v1::UpdateStudyRequest& proto) {
  StudyUpdate update;
  if (proto.has_trials()) update.trials = proto.trials();
  if (proto.has_add_trials()) update.add_trials = proto.add_trials();
  if (proto.has_wall_clock()) update.wall_clock = FromProto(proto.wall_clock());
  if (proto.has_failures_in_a_row()) update.failures_in_a_row = proto.failures_in_a_row();
  if (proto.has_failed_share()) update.failed_share = proto.failed_share();
  if (proto.has_target()) update.target = proto.target();
  update.remove_target = proto.remove_target();
  for (const v1::AddedChoices& added : proto.added_choices()) {
    std::vector<ParamValue>& choices = update.added_choices[added.parameter()];
    for (const v1::Value& choice : added.choices()) {
      HPO_ASSIGN_OR_RETURN(choices.emplace_back(), FromProto(choice));
    }
  }
  return update;
}

absl::StatusOr<StudyEdit> FromProto(const v1::EditStudyRequest& proto) {
  StudyEdit edit{.file = {}, .ranges = {}, .validate_only = proto.validate_only()};
  if (proto.yaml().empty() == proto.ranges().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("ranges: expected them or yaml, got ",
                                                   proto.yaml().empty() ? "neither" : "both"));
  }
  for (const v1::ParameterRange& range : proto.ranges()) {
    HPO_ASSIGN_OR_RETURN(edit.ranges[range.parameter()], FromProto(range.domain()));
  }
  if (proto.yaml().empty()) return edit;
  const std::string origin = proto.origin().empty() ? "study" : proto.origin();
  HPO_ASSIGN_OR_RETURN(edit.file, ParseStudyFile(proto.yaml(), origin, StudyOverrides()));
  return edit;
}

v1::EditStudyResponse ToProto(const StudyApi::Edited& edited) {
  v1::EditStudyResponse proto;
  const auto add = [](const std::map<std::string, Domain>& ranges, auto* out) {
    for (const auto& [parameter, domain] : ranges) {
      v1::ParameterRange& range = *out->Add();
      range.set_parameter(parameter);
      *range.mutable_domain() = ToProto(domain);
    }
  };
  *proto.mutable_study() = ToProto(edited.status);
  add(edited.result.before, proto.mutable_before());
  add(edited.result.after, proto.mutable_after());
  proto.set_outside(edited.result.num_outside);
  for (const TrialNumber number : edited.result.cancelled) proto.add_cancelled(number.value);
  return proto;
}

AttributeChange FromProto(const v1::AnnotateRequest& proto) {
  AttributeChange change{.note = {},
                         .add_tags = {proto.add_tags().begin(), proto.add_tags().end()},
                         .remove_tags = {proto.remove_tags().begin(), proto.remove_tags().end()},
                         .set = FromProto(proto.attributes())};
  if (proto.has_note()) change.note = proto.note();
  return change;
}

absl::StatusOr<EnqueueRequest> FromProto(const v1::EnqueueTrialRequest& proto) {
  EnqueueRequest request{.demonstration = proto.demonstration(),
                         .skip_admission = proto.skip_admission(),
                         .forced_micro_batch = proto.forced_micro_batch()};
  HPO_ASSIGN_OR_RETURN(request.params, FromProto(proto.params()));
  return request;
}

absl::StatusOr<TrialFilter> FromProto(const v1::ListTrialsRequest& proto) {
  // Each once and in order: two requests for the same are one statement of the database.
  std::set<TrialState> states;
  for (const int state : proto.states()) {
    HPO_ASSIGN_OR_RETURN(const TrialState known, FromProto(static_cast<v1::TrialState>(state)));
    states.insert(known);
  }
  std::set<PruneReason> reasons;
  for (const int reason : proto.prune_reasons()) {
    HPO_ASSIGN_OR_RETURN(const PruneReason known, FromProto(static_cast<v1::PruneReason>(reason)));
    reasons.insert(known);
  }
  return TrialFilter{.states = {states.begin(), states.end()},
                     .prune_reasons = {reasons.begin(), reasons.end()},
                     .newest_first = proto.newest_first()};
}

v1::Trial ToListed(Trial trial) {
  const auto shorten = [](std::string& text) { text = Shortened(text, kListedTextLimit); };
  if (trial.outcome) {
    if (auto* failed = std::get_if<Failed>(&*trial.outcome)) shorten(failed->message);
    if (auto* oom = std::get_if<OutOfMemory>(&*trial.outcome)) {
      shorten(oom->message);
      shorten(oom->traceback);
    }
  }
  return ToProto(trial);
}

v1::Trial ToProto(const TrialView& detail) {
  v1::Trial proto = ToProto(detail.trial);
  for (const Measurement& measurement : detail.measurements) {
    *proto.add_measurements() = ToProto(measurement);
  }
  proto.set_sampler(detail.sampler);
  return proto;
}

v1::EstimateMemoryResponse ToProto(const MemoryAnswer& answer) {
  v1::EstimateMemoryResponse proto;
  *proto.mutable_estimate() = ToProto(answer.planned.estimate);
  *proto.mutable_plan() = ToProto(answer.planned.plan);
  proto.set_fits(answer.planned.fits);
  proto.set_usable_bytes(answer.usable.count);
  proto.set_explanation(answer.explanation);
  return proto;
}

v1::WatchStudyResponse ToProto(const TrialEvent& event) {
  v1::WatchStudyResponse proto;
  v1::TrialChange& change = *proto.mutable_change();
  change.set_sequence(event.sequence);
  change.set_kind(event.kind);
  if (event.trial) *change.mutable_trial() = ToListed(*event.trial);
  return proto;
}

}  // namespace hpo::server
