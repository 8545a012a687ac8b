#include "proto/convert/worker_proto.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/protocol/worker_facts_fields.h"
#include "common/study/study.h"
#include "common/study/trial_fields.h"
#include "proto/convert/message_fields.h"

namespace hpo {

template <>
struct MessageForm<LengthHistogram> {
  using Wire = v1::LengthHistogram;

  static Wire Write(const LengthHistogram& lengths) {
    Wire proto;
    proto.mutable_rows_by_length()->insert(lengths.begin(), lengths.end());
    return proto;
  }

  static absl::StatusOr<LengthHistogram> Read(const Wire& proto) {
    for (const auto& [length, count] : proto.rows_by_length()) {
      if (length < 1 || count < 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "expected lengths >= 1 and counts >= 0, got ", count, " rows of length ", length));
      }
    }
    return LengthHistogram(proto.rows_by_length().begin(), proto.rows_by_length().end());
  }
};

template <>
struct MessageForm<DataSetFacts> {
  using Wire = v1::DataSet;
  static absl::StatusOr<DataSetFacts> Read(const Wire& proto) {
    absl::StatusOr<DataSetFacts> facts = FromMessage<DataSetFacts>(proto);
    if (!facts.ok()) return Annotate(facts.status(), absl::StrCat("data set ", proto.name()));
    return facts;
  }
};

v1::RegisterWorkerRequest ToProto(const WorkerFacts& facts) {
  v1::RegisterWorkerRequest proto = ToMessage<v1::RegisterWorkerRequest>(facts);
  if (facts.serves) {
    proto.mutable_serves()->mutable_names()->Assign(facts.serves->begin(), facts.serves->end());
  }
  proto.mutable_left_out()->insert(facts.left_out.begin(), facts.left_out.end());
  proto.set_reads_again(facts.reads_again);
  proto.set_preflight(ToWire<v1::PreflightAbility>(facts.preflight));
  return proto;
}

absl::StatusOr<WorkerFacts> FromProto(const v1::RegisterWorkerRequest& proto) {
  if (proto.worker().empty() || proto.instance_key().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a worker name and an instance key, got '", proto.worker(), "' and '",
                     proto.instance_key(), "'"));
  }
  HPO_ASSIGN_OR_RETURN(WorkerFacts facts, FromMessage<WorkerFacts>(proto));
  if (facts.gpus < 1 || facts.gpus > kMostGpus) {
    return absl::InvalidArgumentError(absl::StrCat("gpus: expected 1 to ", kMostGpus,
                                                   " GPUs that a trial takes, got ", facts.gpus));
  }
  if (facts.device.source.empty()) facts.device.source = DeviceProfile().source;
  if (proto.has_serves()) {
    facts.serves.emplace(proto.serves().names().begin(), proto.serves().names().end());
  }
  facts.left_out.insert(proto.left_out().begin(), proto.left_out().end());
  facts.reads_again = proto.reads_again();
  // An older worker says nothing; what a newer one can do besides is not asked for.
  facts.preflight = FromWire<PreflightAbility>(proto.preflight()).value_or(PreflightAbility::kNone);
  return facts;
}

v1::ReleaseReason ToProto(ReleaseReason reason) { return ToWire<v1::ReleaseReason>(reason); }

absl::StatusOr<ReleaseReason> FromProto(v1::ReleaseReason proto) {
  return FromWire<ReleaseReason>(proto);
}

}  // namespace hpo
