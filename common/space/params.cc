#include "common/space/params.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

template <typename T>
std::optional<T> FindAs(const ParamMap& params, absl::string_view name) {
  const auto found = params.find(std::string(name));
  if (found == params.end()) return std::nullopt;
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) return std::nullopt;
  return *value;
}

bool ReadsAsAnother(const std::string& text) {
  constexpr absl::string_view kWords[] = {"", "null", "true", "false"};
  double number = 0.0;
  return std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords) ||
         absl::SimpleAtod(text, &number);
}

}  // namespace

std::string FormatParam(const ParamValue& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return absl::StrCat(*integer);
  if (const double* number = std::get_if<double>(&value)) return absl::StrFormat("%.6g", *number);
  if (std::holds_alternative<Null>(value)) return "null";
  return std::get<std::string>(value);
}

std::string ShowParam(const ParamValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  if (text == nullptr || !ReadsAsAnother(*text)) return FormatParam(value);
  return absl::StrCat("\"", *text, "\"");
}

std::string FormatParams(const ParamMap& params) {
  return absl::StrJoin(params, " ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, "=", ShowParam(entry.second));
  });
}

std::optional<double> AsNumber(const ParamValue& value) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const double* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

std::optional<int64_t> FindInt(const ParamMap& params, absl::string_view name) {
  return FindAs<int64_t>(params, name);
}

std::optional<double> FindDouble(const ParamMap& params, absl::string_view name) {
  const auto found = params.find(std::string(name));
  if (found == params.end()) return std::nullopt;
  return AsNumber(found->second);
}

std::optional<std::string> FindString(const ParamMap& params, absl::string_view name) {
  return FindAs<std::string>(params, name);
}

nlohmann::json ParamToJson(const ParamValue& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::json {
        if constexpr (std::is_same_v<decltype(held), const Null&>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

nlohmann::json ParamsToJson(const ParamMap& params) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : params) json[name] = ParamToJson(value);
  return json;
}

absl::StatusOr<ParamValue> ParamFromJson(const nlohmann::json& json) {
  if (json.is_boolean()) return ParamValue(json.get<bool>());
  if (json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX}) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an integer of at most 63 bits, got ", json.get<uint64_t>()));
  }
  if (json.is_number_integer()) return ParamValue(json.get<int64_t>());
  if (json.is_number_float()) return ParamValue(json.get<double>());
  if (json.is_string()) return ParamValue(json.get<std::string>());
  if (json.is_null()) return ParamValue(Null());
  return absl::InvalidArgumentError(absl::StrCat(
      "expected a boolean, a number, a string or null for a parameter, got ", json.type_name()));
}

absl::StatusOr<ParamMap> ParamsFromJson(const nlohmann::json& json) {
  if (!json.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an object of parameters, got ", json.type_name()));
  }
  ParamMap params;
  for (const auto& [name, value] : json.items()) {
    auto parsed = ParamFromJson(value);
    if (!parsed.ok()) return Annotate(parsed.status(), name);
    params.emplace(name, *std::move(parsed));
  }
  return params;
}

}  // namespace hpo
