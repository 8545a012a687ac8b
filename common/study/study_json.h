// Studies as canonical JSON, for storage and comparison.
#pragma once

#include "absl/status/statusor.h"
#include "common/study/study.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// FromJson accepts what ToJson wrote.
//   InvalidArgument  a member missing, of another type or out of range; names it
nlohmann::json StudyToJson(const StudySpec& spec);
absl::StatusOr<StudySpec> StudyFromJson(const nlohmann::json& json);

}  // namespace hpo
