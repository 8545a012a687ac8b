// Memory over a study's search space on the wire: the messages of proto/hpo/v1/analysis.proto.
// Conventions: proto/convert/params_proto.h. Protobuf types stop here.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "hpo/v1/analysis.pb.h"
#include "memory/plan/space_survey.h"
#include "server/analysis/memory_analysis.h"

namespace hpo::server {

//   InvalidArgument  a parameter without a value
absl::StatusOr<FrontierQuery> FromProto(const v1::GetMemoryFrontierRequest& proto);
v1::GetMemoryFrontierResponse ToProto(const MemoryFrontier& frontier);

std::vector<Bytes> CapacitiesOf(const v1::GetMemoryFitRequest& proto);
v1::GetMemoryFitResponse ToProto(const memory::SpaceSurvey& survey);

}  // namespace hpo::server
