// Records as rows, their members as columns: numbers, JSON text and enum names. Text that is not
// UTF-8 (a trainer's message) is stored with replacement characters.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
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
  const std::optional<Enum> value = ValueNamed<Enum>(text);
  if (value.has_value()) return *value;
  return absl::DataLossError(
      absl::StrCat("expected a known name, got: ", text.substr(0, kShownOfColumn)));
}

// The status of storing a row, by that of reading it again: one that cannot be read is rejected.
//   InvalidArgument  `read`, its reading, is DataLoss
inline absl::Status ReadBack(const absl::Status& read) {
  if (!absl::IsDataLoss(read)) return read;
  return absl::InvalidArgumentError(
      absl::StrCat("expected values that can be stored and read again, got ", read.message()));
}

// ---- Single columns ----------------------------------------------------------------------------

// Whether SQLite stores a value of this type without conversion.
template <typename T>
inline constexpr bool kIsColumn =
    std::is_arithmetic_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, Bytes> ||
    std::is_same_v<T, absl::Time> || std::is_same_v<T, absl::Duration>;

// What a column stores of a member: itself, an enumerator's name, a number's value, else JSON text.
template <typename T>
decltype(auto) ToColumn(const T& value) {
  if constexpr (kIsColumn<T>) {
    return (value);
  } else if constexpr (kIsOptional<T>) {
    std::optional<std::remove_cvref_t<decltype(ToColumn(*value))>> column;
    if (value.has_value()) column = ToColumn(*value);
    return column;
  } else if constexpr (std::is_enum_v<T>) {
    return NameIn(value);
  } else if constexpr (requires { value.value; }) {
    return (value.value);
  } else {
    return JsonText(ToJson(value));
  }
}

// The column `index` of `row`, whose name is `name`. NULL is nullopt.
//   DataLoss  not what was written
template <typename T>
absl::Status ReadColumn(const Statement& row, int index, absl::string_view name, T& value) {
  if constexpr (kIsOptional<T>) {
    value.reset();
    return row.IsNull(index) ? absl::OkStatus() : ReadColumn(row, index, name, value.emplace());
  } else if constexpr (std::is_same_v<T, bool>) {
    value = row.Bool(index);
  } else if constexpr (std::is_integral_v<T>) {
    value = row.Int(index);
  } else if constexpr (std::is_floating_point_v<T>) {
    value = row.Real(index);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = row.Text(index);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    value = row.Size(index);
  } else if constexpr (std::is_same_v<T, absl::Time>) {
    value = row.Time(index);
  } else if constexpr (std::is_same_v<T, absl::Duration>) {
    value = absl::Microseconds(row.Int(index));
  } else if constexpr (std::is_enum_v<T>) {
    HPO_ASSIGN_OR_RETURN(value, EnumFromText<T>(row.Text(index)));
  } else if constexpr (requires { value.value; }) {
    value.value = row.Int(index);
  } else {
    HPO_ASSIGN_OR_RETURN(value, FromText<T>(row.Text(index), name));
  }
  return absl::OkStatus();
}

// ---- Rows --------------------------------------------------------------------------------------
// A record lists its columns once, by a function in its namespace:
//
//   void VisitColumns(Is<AttemptRecord> auto& record, auto visit) {
//     VisitStored(record.attempt, visit);
//     visit({"usable"}, record.limit);
//   }
//
// A type without such a list has a column for each of its fields (common/base/fields/field.h). The
// texts of statements, what they bind and what is read follow from the list.

struct RowColumn {
  enum Use {
    kWhole,     // inserted, updated and read
    kInserted,  // not updated: another statement does
    kKey,       // only read: whoever writes the row names it by a RowKey
    kDerived,   // never read: follows from other members
  };
  const char* name;
  Use use = kWhole;
};

// Visits the fields of a part of a record for which the table has columns.
void VisitStored(auto& part, auto visit) {
  VisitFields(part, [&](const Field& field, auto& member) {
    if (field.in_row) visit(RowColumn{field.key}, member);
  });
}

template <typename T>
concept HasColumns = requires(T& record) {
  VisitColumns(record, [](const RowColumn&, auto&) {});
};

template <typename Record>
void VisitRow(Record& record, auto visit) {
  if constexpr (HasColumns<Record>) {
    VisitColumns(record, visit);
  } else {
    VisitStored(record, visit);
  }
}

// Of the columns that `used` takes each by `format`, which has its name as $0.
template <typename Record>
std::string* NewColumnText(absl::string_view format, bool (*used)(RowColumn::Use)) {
  std::vector<std::string> parts;
  const Record record;
  VisitRow(record, [&](const RowColumn& column, const auto&) {
    if (used(column.use)) parts.push_back(absl::Substitute(format, column.name));
  });
  return new std::string(absl::StrJoin(parts, ", "));
}

inline bool IsRead(RowColumn::Use use) { return use != RowColumn::kDerived; }
inline bool IsInserted(RowColumn::Use use) { return use != RowColumn::kKey; }
inline bool IsUpdated(RowColumn::Use use) {
  return use == RowColumn::kWhole || use == RowColumn::kDerived;
}

// "number, state, ...": what a SELECT names whose rows ReadRow takes.
template <typename Record>
const std::string& ColumnNames() {
  static const std::string* const kText = NewColumnText<Record>("$0", IsRead);
  return *kText;
}

// `record` has what the row does not hold.
//   DataLoss  a column is not what was written
template <typename Record>
absl::StatusOr<Record> ReadRow(const Statement& row, Record record = {}) {
  absl::Status status;
  int index = 0;
  VisitRow(record, [&](const RowColumn& column, auto& member) {
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(member)>>) {
      if (status.ok()) status = ReadColumn(row, index, column.name, member);
      ++index;
    }
  });
  HPO_RETURN_IF_ERROR(status);
  return record;
}

// "SELECT ... FROM " and `from`, with `values` bound to it, ?1 first.
template <typename Record, typename... Values>
Statement Select(Database& database, absl::string_view from, const Values&... values) {
  Statement rows = database.Prepare(absl::StrCat("SELECT ", ColumnNames<Record>(), " FROM ", from));
  rows.Bind(values...);
  return rows;
}

// All rows of such a statement; `blank` has what they do not hold.
template <typename Record, typename... Values>
absl::StatusOr<std::vector<Record>> SelectAll(Database& database, const Record& blank,
                                              absl::string_view from, const Values&... values) {
  Statement rows = Select<Record>(database, from, values...);
  std::vector<Record> records;
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return records;
    HPO_ASSIGN_OR_RETURN(records.emplace_back(), ReadRow(rows, blank));
  }
}

// The first of its rows; nullopt: there is none.
template <typename Record, typename... Values>
absl::StatusOr<std::optional<Record>> SelectFirst(Database& database, const Record& blank,
                                                  absl::string_view from, const Values&... values) {
  Statement rows = Select<Record>(database, from, values...);
  HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
  if (!row) return std::nullopt;
  return ReadRow(rows, blank);
}

// Which row: names and values of its key's columns.
using RowKey = std::initializer_list<std::pair<absl::string_view, int64_t>>;

// Binds the columns that `used` takes, from ?1 on. Returns how many.
template <typename Record>
int BindColumns(const Record& record, bool (*used)(RowColumn::Use), Statement& statement) {
  int index = 0;
  VisitRow(record, [&](const RowColumn& column, const auto& member) {
    if (used(column.use)) statement.BindAt(++index, ToColumn(member));
  });
  return index;
}

// `into`: "INSERT INTO trial", "INSERT OR IGNORE INTO measurement".
template <typename Record>
absl::Status InsertRow(Database& database, absl::string_view into, const RowKey& key,
                       const Record& record) {
  static const std::string* const kNames = NewColumnText<Record>("$0", IsInserted);
  static const std::string* const kPlaces = NewColumnText<Record>("?", IsInserted);
  std::string names = *kNames;
  std::string places = *kPlaces;
  for (const auto& [name, value] : key) {
    absl::StrAppend(&names, ", ", name);
    absl::StrAppend(&places, ", ?");
  }
  Statement statement =
      database.Prepare(absl::StrCat(into, " (", names, ") VALUES (", places, ")"));
  int index = BindColumns(record, IsInserted, statement);
  for (const auto& [name, value] : key) statement.BindAt(++index, value);
  return statement.Run();
}

// `more`: " AND ..." of the row, without parameters. Where no row is such, nothing is changed
// (Database::NumChanged).
template <typename Record>
absl::Status UpdateRow(Database& database, absl::string_view table, const RowKey& key,
                       const Record& record, absl::string_view more = "") {
  static const std::string* const kSets = NewColumnText<Record>("$0 = ?", IsUpdated);
  std::string where;
  for (const auto& [name, value] : key) {
    absl::StrAppend(&where, where.empty() ? "" : " AND ", name, " = ?");
  }
  Statement statement =
      database.Prepare(absl::StrCat("UPDATE ", table, " SET ", *kSets, " WHERE ", where, more));
  int index = BindColumns(record, IsUpdated, statement);
  for (const auto& [name, value] : key) statement.BindAt(++index, value);
  return statement.Run();
}

}  // namespace hpo::server
