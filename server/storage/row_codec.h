// Values as columns: JSON text and enum names. Text that is not UTF-8 (a trainer's message) is
// stored with replacement characters.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "common/study/trial_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {

inline std::string JsonText(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// nullopt stays nullopt.
template <typename T>
std::optional<std::string> OptionalText(const std::optional<T>& value) {
  if (!value) return std::nullopt;
  return JsonText(ToJson(*value));
}

// What an error message shows of a column.
constexpr size_t kShownOfColumn = 80;

//   DataLoss  not what was written: names `column`
template <typename T>
absl::StatusOr<T> FromText(const std::string& text, absl::string_view column) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::DataLossError(
        absl::StrCat("column ", column, ": expected JSON, got: ", text.substr(0, kShownOfColumn)));
  }
  absl::StatusOr<T> value = FromJson<T>(json);
  if (!value.ok()) {
    return absl::DataLossError(absl::StrCat("column ", column, ": ", value.status().message()));
  }
  return value;
}

//   DataLoss  an unknown name
template <typename Enum>
absl::StatusOr<Enum> EnumFromText(const std::string& text) {
  const std::optional<Enum> value = ParseName<Enum>(text);
  if (!value)
    return absl::DataLossError(
        absl::StrCat("expected a known name, got: ", text.substr(0, kShownOfColumn)));
  return *value;
}

// For what was just stored: a row that no reader takes is of no use to anyone.
//   InvalidArgument  `read`, its reading, is DataLoss
inline absl::Status ReadBack(const absl::Status& read) {
  if (!absl::IsDataLoss(read)) return read;
  return absl::InvalidArgumentError(
      absl::StrCat("expected values that can be stored and read again, got ", read.message()));
}

}  // namespace hpo
