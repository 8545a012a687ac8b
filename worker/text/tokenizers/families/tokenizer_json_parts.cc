#include "worker/text/tokenizers/families/tokenizer_json_parts.h"

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo::text {

absl::Status UnknownPart(const std::string& where, absl::string_view what, absl::string_view got) {
  return absl::UnimplementedError(
      absl::StrCat(where, ": expected ", what, ", got '", got,
                   "', which hpo does not support; without tokenizer.json the vocabulary files are "
                   "read, if there are any"));
}

const nlohmann::json& MemberOrNull(const nlohmann::json& json, const char* key) {
  static const nlohmann::json* const null = new nlohmann::json();
  const auto found = json.find(key);
  return found == json.end() ? *null : *found;
}

absl::StatusOr<std::string> PartType(const nlohmann::json& part, const std::string& where) {
  std::string type;
  JsonReader reader(part, where);
  reader.Required("type", type);
  HPO_RETURN_IF_ERROR(reader.status());
  return type;
}

}  // namespace hpo::text
