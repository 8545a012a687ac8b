// What the readers of a tokenizer.json's members share. `where` is the path of a part with which
// errors begin; codes as of ParseTokenizerJson.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo::text {

// "expected WHAT, got 'X', which hpo does not support", with code Unimplemented.
absl::Status UnknownPart(const std::string& where, absl::string_view what, absl::string_view got);

// Member `key` of an object; null where it is absent.
const nlohmann::json& MemberOrNull(const nlohmann::json& json, const char* key);

// The `type` of a part.
absl::StatusOr<std::string> PartType(const nlohmann::json& part, const std::string& where);

}  // namespace hpo::text
