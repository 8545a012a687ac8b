// Values as columns: JSON text and enum names. Text that is not UTF-8 (a trainer's message) is
// stored with replacement characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/space/space_fields.h"
#include "common/study/trial.h"
#include "common/study/trial_fields.h"
#include "nlohmann/json.hpp"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

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

// A table's list of columns visits each member of a record with its column's name; the text of
// statements, binding (ToColumn) and reading (ColumnReader) follow from that list.

// What a column stores of a member.
template <typename T>
const T& ToColumn(const T& value) {
  return value;
}
inline int64_t ToColumn(TrialNumber value) { return value.value; }
inline int64_t ToColumn(AttemptNumber value) { return value.value; }
inline absl::string_view ToColumn(TrialState value) { return Name(value); }
inline std::string ToColumn(const ParamMap& value) { return JsonText(ParamsToJson(value)); }
inline std::optional<std::string> ToColumn(const std::optional<TrialOutcome>& value) {
  return OptionalText(value);
}

// Reads the columns of `row` in the order in which they are visited; the first that is not what was
// written is DataLoss and ends the reading.
class ColumnReader {
 public:
  explicit ColumnReader(const Statement& row) : row_(row) {}

  template <typename T>
  void Read(absl::string_view name, T& value) {
    if (status_.ok()) status_ = Take(name, value);
    ++column_;
  }
  const absl::Status& status() const { return status_; }

 private:
  absl::Status Take(absl::string_view, int64_t& value) { return Set(value, row_.Int(column_)); }
  absl::Status Take(absl::string_view, double& value) { return Set(value, row_.Real(column_)); }
  absl::Status Take(absl::string_view, bool& value) { return Set(value, row_.Bool(column_)); }
  absl::Status Take(absl::string_view, std::string& value) {
    return Set(value, row_.Text(column_));
  }
  absl::Status Take(absl::string_view, Bytes& value) { return Set(value, row_.Size(column_)); }
  absl::Status Take(absl::string_view, absl::Time& value) { return Set(value, row_.Time(column_)); }
  absl::Status Take(absl::string_view, absl::Duration& value) {
    return Set(value, absl::Microseconds(row_.Int(column_)));
  }
  absl::Status Take(absl::string_view, TrialNumber& value) {
    return Set(value.value, row_.Int(column_));
  }
  absl::Status Take(absl::string_view, AttemptNumber& value) {
    return Set(value.value, row_.Int(column_));
  }
  absl::Status Take(absl::string_view, TrialState& value) {
    HPO_ASSIGN_OR_RETURN(value, EnumFromText<TrialState>(row_.Text(column_)));
    return absl::OkStatus();
  }
  absl::Status Take(absl::string_view name, ParamMap& value) {
    HPO_ASSIGN_OR_RETURN(value, FromText<ParamMap>(row_.Text(column_), name));
    return absl::OkStatus();
  }
  absl::Status Take(absl::string_view name, TrialOutcome& value) {
    HPO_ASSIGN_OR_RETURN(value, FromText<TrialOutcome>(row_.Text(column_), name));
    return absl::OkStatus();
  }
  // NULL is nullopt.
  template <typename T>
  absl::Status Take(absl::string_view name, std::optional<T>& value) {
    value.reset();
    return row_.IsNull(column_) ? absl::OkStatus() : Take(name, value.emplace());
  }

  template <typename T>
  static absl::Status Set(T& value, T read) {
    value = std::move(read);
    return absl::OkStatus();
  }

  const Statement& row_;
  int column_ = 0;
  absl::Status status_;
};

}  // namespace hpo::server
