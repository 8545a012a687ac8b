#include "common/study/trial_measurement.h"

#include "common/study/trial_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {

nlohmann::json MeasurementsToJson(const std::vector<Measurement>& measurements) {
  return ToJson(measurements);
}

absl::StatusOr<std::vector<Measurement>> MeasurementsFromJson(const nlohmann::json& json) {
  return FromJson<std::vector<Measurement>>(json);
}

}  // namespace hpo
