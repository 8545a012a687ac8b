// What a worker tells of itself (common/protocol/worker_facts.h), and a worker's directives and
// reasons, on the wire. Conventions: params_proto.h.
#pragma once

#include "absl/status/statusor.h"
#include "common/protocol/worker_facts.h"
#include "common/study/trial.h"
#include "hpo/v1/worker.pb.h"

namespace hpo {

v1::RegisterWorkerRequest ToProto(const WorkerFacts& facts);
//   InvalidArgument  no worker name or instance key, a negative size or count
absl::StatusOr<WorkerFacts> FromProto(const v1::RegisterWorkerRequest& proto);

v1::ReleaseReason ToProto(ReleaseReason reason);
absl::StatusOr<ReleaseReason> FromProto(v1::ReleaseReason proto);

}  // namespace hpo
