// Any bytes as a config.json: refused with its name, or a shape that survives storage and can be
// counted without overflow.
#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/models/model_config.h"
#include "common/models/model_fields.h"
#include "common/models/model_parameters.h"
#include "nlohmann/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view json(reinterpret_cast<const char*>(data), size);
  const auto shape = hpo::ParseModelConfig(json, "config.json");
  if (!shape.ok()) {
    HPO_CHECK(absl::IsInvalidArgument(shape.status()));
    HPO_CHECK(absl::StartsWith(shape.status().message(), "config.json: "));
    HPO_CHECK(!absl::StrContains(shape.status().message(), "\n"));
    return 0;
  }
  const auto stored = hpo::ModelShapeFromJson(hpo::ToJson(*shape));
  HPO_CHECK(stored.ok() && *stored == *shape);
  const auto parameters = hpo::NumParameters(*shape);
  if (hpo::CheckKnownFamily(*shape).ok()) {
    HPO_CHECK(parameters.ok() && *parameters > 0);
  } else {
    HPO_CHECK(absl::IsUnimplemented(parameters.status()));
  }
  return 0;
}
