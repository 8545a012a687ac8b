#include "common/protocol/worker_facts.h"

#include "common/protocol/worker_facts_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {

nlohmann::json DeviceProfileToJson(const DeviceProfile& device) { return ToJson(device); }

absl::StatusOr<DeviceProfile> DeviceProfileFromJson(const nlohmann::json& json) {
  return FromJson<DeviceProfile>(json);
}

nlohmann::json WorkerFactsToJson(const WorkerFacts& facts) { return ToJson(facts); }

absl::StatusOr<WorkerFacts> WorkerFactsFromJson(const nlohmann::json& json) {
  return FromJson<WorkerFacts>(json);
}

}  // namespace hpo
