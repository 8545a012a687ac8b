// What is asked of studies and what is answered, between its value types
// (common/protocol/study_exchange.h) and the wire. Conventions: params_proto.h. What stands in none
// of these functions is converted by its list of fields: ToMessage and FromMessage
// (message_fields.h), with this header, which has the forms of what the lists hold.
#pragma once

#include "absl/status/statusor.h"
#include "common/protocol/study_exchange_fields.h"
#include "hpo/v1/study.pb.h"
#include "memory/need/estimate_fields.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/study_proto.h"
#include "proto/convert/trial_proto.h"

namespace hpo {

v1::UpdateStudyRequest ToProto(const StudyUpdate& update);
//   InvalidArgument  a choice without a value
absl::StatusOr<StudyUpdate> FromProto(const v1::UpdateStudyRequest& proto);

// States and reasons each once and in order: two requests for the same are one statement of the
// database.
//   InvalidArgument  a state or reason that this server does not know
absl::StatusOr<TrialQuery> FromProto(const v1::ListTrialsRequest& proto);

v1::WatchStudyResponse ToProto(const WatchEvent& event);
// What an event of a kind that is not known tells is nothing.
absl::StatusOr<WatchEvent> FromProto(const v1::WatchStudyResponse& proto);

}  // namespace hpo
