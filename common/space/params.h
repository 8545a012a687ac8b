// A configuration: parameter names and typed values. No numbers in strings, anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace hpo {

// JSON's null, Python's None: a value like any other, such as "no limit".
using Null = std::monostate;

// Any scalar of JSON.
using ParamValue = std::variant<bool, int64_t, double, std::string, Null>;

// Ordered by name, so that two equal configurations print and hash alike.
using ParamMap = std::map<std::string, ParamValue>;

// "true", "12", "3e-05", "bert-base-uncased", "null".
std::string FormatParam(const ParamValue& value);

// As FormatParam, for people: a text that reads as another value is in quotes ("null", "1", "").
std::string ShowParam(const ParamValue& value);

// "model.name=bert-base-uncased train.lr=3e-05 ...", each value as ShowParam has it.
std::string FormatParams(const ParamMap& params);

// The value as a number: int64 and double; nullopt for bool, string and null.
std::optional<double> AsNumber(const ParamValue& value);

// Typed look-ups: the value, or nullopt when the name is absent or has another type
// (an int64 is accepted where a double is asked for).
std::optional<int64_t> FindInt(const ParamMap& params, absl::string_view name);
std::optional<double> FindDouble(const ParamMap& params, absl::string_view name);
std::optional<std::string> FindString(const ParamMap& params, absl::string_view name);

// JSON keeps the type: 3 is an int64, 3.0 a double.
nlohmann::json ParamToJson(const ParamValue& value);
nlohmann::json ParamsToJson(const ParamMap& params);

//   InvalidArgument  not an object, or a member that is an array, an object or a number too large
absl::StatusOr<ParamValue> ParamFromJson(const nlohmann::json& json);
absl::StatusOr<ParamMap> ParamsFromJson(const nlohmann::json& json);

}  // namespace hpo
