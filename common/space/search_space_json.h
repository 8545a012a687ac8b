// Canonical JSON of search spaces, for the database.
#pragma once

#include "absl/status/statusor.h"
#include "common/space/search_space.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// {"kind": "float"|"int", "low", "high", "step", "log"} (step is null where there is none), or
// {"kind": "choices", "choices": [...]}.
nlohmann::json DomainToJson(const Domain& domain);

// {"parameters": [...], "constraints": [...], "model_facts": {...}}.
nlohmann::json SpaceToJson(const SearchSpace& space);

// Accept what the writers wrote; ranges are not checked (ValidateSpace does).
//   InvalidArgument  a member missing or of another type; names it
absl::StatusOr<Domain> DomainFromJson(const nlohmann::json& json);
absl::StatusOr<SearchSpace> SpaceFromJson(const nlohmann::json& json);

}  // namespace hpo
