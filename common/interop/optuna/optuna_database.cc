#include "common/interop/optuna/optuna_database.h"

#include <string>

#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::json;

void Bind(sqlite3_stmt* statement, int index, const Json& value) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  } else if (value.is_number_integer()) {
    sqlite3_bind_int64(statement, index, value.get<int64_t>());
  } else if (value.is_number()) {
    sqlite3_bind_double(statement, index, value.get<double>());
  } else {
    sqlite3_bind_null(statement, index);
  }
}

}  // namespace

StatementPointer BindStatement(sqlite3* database, const char* sql, const Json& values) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database, sql, -1, &raw, nullptr) != SQLITE_OK) return nullptr;
  StatementPointer statement(raw);
  for (size_t i = 0; i < values.size(); ++i) {
    Bind(raw, static_cast<int>(i) + 1, values[i]);
  }
  return statement;
}

}  // namespace hpo
