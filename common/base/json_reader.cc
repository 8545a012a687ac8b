#include "common/base/json_reader.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

constexpr size_t kMaxShown = 60;

bool FitsInt64(const nlohmann::json& json) {
  if (!json.is_number_integer()) return false;
  return !json.is_number_unsigned() ||
         json.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

// What protobuf's JSON writes of a number that is not finite.
std::optional<double> SpecialNumber(const nlohmann::json& json) {
  if (json == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (json == "Infinity") return std::numeric_limits<double>::infinity();
  if (json == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text) {
  try {
    return nlohmann::json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected JSON, got something else at byte ", error.byte));
  } catch (const nlohmann::json::exception&) {  // a number that no double holds
    return absl::InvalidArgumentError("expected JSON, got a number out of range");
  }
}

std::string DumpJson(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string DescribeJson(const nlohmann::json& json) {
  if (json.is_null()) return "null";
  std::string shown;
  if (!json.is_structured()) {
    shown = CutAfter(DumpJson(json), kMaxShown);
  }
  if (json.is_object()) return "an object";
  if (json.is_array()) return "an array";
  if (json.is_number_integer()) return absl::StrCat("the integer ", shown);
  return absl::StrCat("the ", json.type_name(), " ", shown);
}

absl::Status UnexpectedJson(absl::string_view where, absl::string_view expected,
                            const nlohmann::json& got) {
  return Unexpected(where, expected, DescribeJson(got));
}

JsonReader::JsonReader(const nlohmann::json& object, absl::string_view path)
    : object_(object), path_(path) {
  if (!object.is_object()) {
    status_ = absl::InvalidArgumentError(absl::StrCat(
        path_, path_.empty() ? "" : ": ", "expected an object, got ", DescribeJson(object)));
  }
}

bool JsonReader::Has(const char* key) const { return object_.is_object() && object_.contains(key); }

void JsonReader::Fail(absl::string_view key, absl::string_view message) {
  if (!status_.ok()) return;
  status_ =
      absl::InvalidArgumentError(absl::StrCat(path_, path_.empty() ? "" : ".", key, ": ", message));
}

const nlohmann::json* JsonReader::Find(const char* key, bool required) {
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(key);
  if (found == object_.end()) {
    if (required) Fail(key, "missing");
    return nullptr;
  }
  if (!required && found->is_null()) return nullptr;
  return &*found;
}

void JsonReader::Expected(const char* key, absl::string_view expected, const nlohmann::json& got) {
  Fail(key, absl::StrCat("expected ", expected, ", got ", DescribeJson(got)));
}

void JsonReader::Convert(const char* key, const nlohmann::json& json, bool& out) {
  if (!json.is_boolean()) return Expected(key, "true or false", json);
  out = json.get<bool>();
}

void JsonReader::Convert(const char* key, const nlohmann::json& json, int64_t& out) {
  if (!FitsInt64(json)) return Expected(key, "an integer", json);
  out = json.get<int64_t>();
}

void JsonReader::Convert(const char* key, const nlohmann::json& json, uint64_t& out) {
  if (!json.is_number_integer() || (!json.is_number_unsigned() && json.get<int64_t>() < 0)) {
    return Expected(key, "an integer >= 0", json);
  }
  out = json.get<uint64_t>();
}

void JsonReader::Convert(const char* key, const nlohmann::json& json, double& out) {
  if (json.is_null()) {
    out = std::numeric_limits<double>::quiet_NaN();
  } else if (json.is_number()) {
    out = json.get<double>();
  } else {
    Expected(key, "a number", json);
  }
}

void JsonReader::Convert(const char* key, const nlohmann::json& json, std::string& out) {
  if (!json.is_string()) return Expected(key, "a string", json);
  out = json.get<std::string>();
}

void JsonReader::Convert(const char* key, const nlohmann::json& json, Bytes& out) {
  if (!FitsInt64(json) || json.get<int64_t>() < 0) {
    return Expected(key, "a number of bytes (an integer >= 0)", json);
  }
  out = Bytes{json.get<int64_t>()};
}

void JsonReader::Convert(const char* key, const nlohmann::json& json, absl::Duration& out) {
  double seconds = 0.0;
  Convert(key, json, seconds);
  out = absl::Seconds(seconds);
}

void JsonReader::Convert(const char* key, const nlohmann::json& json,
                         std::vector<std::string>& out) {
  if (!json.is_array()) return Expected(key, "an array of strings", json);
  std::vector<std::string> strings;
  for (const nlohmann::json& element : json) {
    if (!element.is_string()) return Expected(key, "an array of strings", element);
    strings.push_back(element.get<std::string>());
  }
  out = std::move(strings);
}

void JsonReader::Convert(const char* key, const nlohmann::json& json,
                         std::map<std::string, double>& out) {
  JsonReader members(json, absl::StrCat(path_, path_.empty() ? "" : ".", key));
  std::map<std::string, double> numbers;
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) {
      const std::optional<double> special = SpecialNumber(value);
      if (special) {
        numbers[name] = *special;
      } else if (value.is_string()) {
        members.Expected(name.c_str(), "a number, \"NaN\", \"Infinity\" or \"-Infinity\"", value);
      } else {
        members.Convert(name.c_str(), value, numbers[name]);
      }
    }
  }
  if (!members.status().ok()) {
    status_ = members.status();
    return;
  }
  out = std::move(numbers);
}

}  // namespace hpo
