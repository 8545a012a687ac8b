#include "common/study/trial_measurement.h"

#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

absl::StatusOr<Measurement> MeasurementFromJson(const nlohmann::json& json) {
  Measurement measurement;
  JsonReader reader(json, "");
  ReadMeasurement(reader, measurement);
  HPO_RETURN_IF_ERROR(reader.status());
  return measurement;
}

}  // namespace

nlohmann::json MeasurementToJson(const Measurement& measurement) {
  return {{"step", measurement.step},
          {"epoch", measurement.epoch},
          {"metrics", MetricsToJson(measurement.metrics)}};
}

nlohmann::json MeasurementsToJson(const std::vector<Measurement>& measurements) {
  nlohmann::json json = nlohmann::json::array();
  for (const Measurement& measurement : measurements) {
    json.push_back(MeasurementToJson(measurement));
  }
  return json;
}

void ReadMeasurement(JsonReader& reader, Measurement& measurement) {
  reader.Required("step", measurement.step);
  reader.Optional("epoch", measurement.epoch);
  reader.Required("metrics", measurement.metrics);
}

absl::StatusOr<std::vector<Measurement>> MeasurementsFromJson(const nlohmann::json& json) {
  return ArrayFromJson(json, MeasurementFromJson);
}

}  // namespace hpo
