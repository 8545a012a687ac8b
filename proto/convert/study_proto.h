// Studies between their value types (common/study/study_status.h, common/space/search_space.h) and
// the wire. Conventions: params_proto.h. Their search spaces: space_proto.h.
#pragma once

#include "absl/status/statusor.h"
#include "common/space/search_space.h"
#include "common/study/study.h"
#include "common/study/study_status.h"
#include "hpo/v1/study.pb.h"
#include "proto/convert/space_proto.h"

namespace hpo {

v1::StudyOrder ToProto(StudyOrder order);
absl::StatusOr<StudyOrder> FromProto(v1::StudyOrder proto);

v1::Budget ToProto(const Budget& budget);
Budget FromProto(const v1::Budget& proto);

v1::Worker ToProto(const WorkerStatus& worker);
absl::StatusOr<WorkerStatus> FromProto(const v1::Worker& proto);

// Of the spec: name, objectives, constraints, budget, space, seed, task, data files, and the types
// of sampler, pruner and memory policy travel; its other fields read as their defaults.
v1::Study ToProto(const StudyStatus& study);
absl::StatusOr<StudyStatus> FromProto(const v1::Study& proto);

template <>
struct MessageForm<StudyStatus> {
  using Wire = v1::Study;
  static Wire Write(const StudyStatus& study) { return ToProto(study); }
  static absl::StatusOr<StudyStatus> Read(const Wire& proto) { return FromProto(proto); }
};

}  // namespace hpo
