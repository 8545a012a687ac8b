#include "common/protocol/worker_facts.h"

#include "common/protocol/worker_facts_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {

nlohmann::json DeviceProfileToJson(const DeviceProfile& device) { return ToJson(device); }

absl::StatusOr<DeviceProfile> DeviceProfileFromJson(const nlohmann::json& json) {
  return FromJson<DeviceProfile>(json);
}

}  // namespace hpo
