// Measurements as JSON: in the trainer protocol, the worker's outbox and the trainer's saved
// state.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/study/trial.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// Numbers keep every bit; metrics that are not finite are written as null and read back as NaN.
nlohmann::json MeasurementsToJson(const std::vector<Measurement>& measurements);

// Without an epoch it is 0.
//   InvalidArgument  no array, or a member missing or of another type; names element and member
absl::StatusOr<std::vector<Measurement>> MeasurementsFromJson(const nlohmann::json& json);

}  // namespace hpo
