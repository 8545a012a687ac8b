#include "proto/convert/outcome_proto.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/study/outcome_text.h"

namespace hpo {
namespace {

constexpr const char* kOutcomes[] = {"completed", "stopped_by_pruner", "out_of_memory", "failed",
                                     "cancelled"};

}  // namespace

v1::MemoryPlan ToProto(const MemoryPlan& plan) { return ToMessage<v1::MemoryPlan>(plan); }

absl::StatusOr<MemoryPlan> FromProto(const v1::MemoryPlan& proto) {
  if (proto.micro_batch() < 1 || proto.micro_batch() > proto.effective_batch()) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory plan: expected 1 <= micro_batch <= effective_batch, got micro_batch ",
                     proto.micro_batch(), " and effective_batch ", proto.effective_batch()));
  }
  return FromMessage<MemoryPlan>(proto);
}

v1::Measurement ToProto(const Measurement& measurement) {
  return ToMessage<v1::Measurement>(measurement);
}

Measurement FromProto(const v1::Measurement& proto) {
  return FromMessage<Measurement>(proto).value();
}

v1::MemoryRecord ToProto(const MemoryRecord& record) { return ToMessage<v1::MemoryRecord>(record); }

absl::StatusOr<MemoryRecord> FromProto(const v1::MemoryRecord& proto) {
  if (proto.stage().empty()) {
    return absl::InvalidArgumentError("memory record: expected a stage, got none");
  }
  return FromMessage<MemoryRecord>(proto);
}

v1::Outcome ToProto(const TrialOutcome& outcome) {
  v1::Outcome proto;
  WriteOneOf(outcome, kOutcomes, proto);
  return proto;
}

absl::StatusOr<TrialOutcome> FromProto(const v1::Outcome& proto) {
  // In stored JSON, which has the same list of fields, it may be left out.
  if (proto.has_out_of_memory() && proto.out_of_memory().kind() == v1::OOM_KIND_UNSPECIFIED) {
    return FromWire<OomKind>(proto.out_of_memory().kind()).status();
  }
  HPO_ASSIGN_OR_RETURN(TrialOutcome outcome, ReadOneOf<TrialOutcome>(proto, "outcome", kOutcomes));
  ShortenTexts(outcome);
  return outcome;
}

}  // namespace hpo
