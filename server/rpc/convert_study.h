// The server's half of study.proto: requests to values, answers to the wire. What both ends convert
// is in proto/convert (conventions: proto/convert/params_proto.h). Protobuf types stop here.
#pragma once

#include "absl/status/statusor.h"
#include "hpo/v1/study.pb.h"
#include "server/api/study_api.h"

namespace hpo::server {

//   InvalidArgument  a choice without a value
absl::StatusOr<StudyUpdate> FromProto(const v1::UpdateStudyRequest& proto);
//   InvalidArgument  not a study file, a range without a domain, a file as well as ranges, or
//                    neither
absl::StatusOr<StudyEdit> FromProto(const v1::EditStudyRequest& proto);
v1::EditStudyResponse ToProto(const StudyApi::Edited& edited);
AttributeChange FromProto(const v1::AnnotateRequest& proto);
//   InvalidArgument  a parameter without a value, or a micro-batch < 0
absl::StatusOr<EnqueueRequest> FromProto(const v1::EnqueueTrialRequest& proto);
//   InvalidArgument  a state or reason that this server does not know
absl::StatusOr<TrialFilter> FromProto(const v1::ListTrialsRequest& proto);

// View FULL: attempts, measurements and who proposed it.
v1::Trial ToProto(const TrialView& detail);

// A trial among others: long texts of its outcome are shortened (kListedTextLimit).
v1::Trial ToListed(Trial trial);
v1::EstimateMemoryResponse ToProto(const MemoryAnswer& answer);
v1::WatchStudyResponse ToProto(const TrialEvent& event);

}  // namespace hpo::server
