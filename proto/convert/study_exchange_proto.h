// Converts requests about studies and their answers (common/protocol/study_exchange.h) to protobuf
// and back. Conventions: params_proto.h. ToMessage and FromMessage (message_fields.h) convert all
// types without a function here by their lists of fields; they need this header, which includes the
// conversions of the fields' types.
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
v1::QueryTrialsRequest ToProto(const TableQuery& query);  // but for the study
TableQuery FromProto(const v1::QueryTrialsRequest& proto);
v1::QueryTrialsResponse ToProto(const TablePage& page);
v1::GetHistoryResponse ToProto(const HistorySample& sample);
// Returns an empty Bookmark for an event of an unknown kind.
absl::StatusOr<WatchEvent> FromProto(const v1::WatchStudyResponse& proto);

}  // namespace hpo
