// Rows of Optuna's tables as values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/status.h"
#include "server/storage/sqlite/database.h"

namespace hpo::server {

// All rows of `statement`, each through `take`.
inline absl::Status ForEachRow(Statement& statement, const std::function<void()>& take) {
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, statement.Next());
    if (!row) return absl::OkStatus();
    take();
  }
}

// The attributes of `owner`: `sql` selects system, key and value for its ?1.
inline absl::Status LoadOptunaAttributes(Database& database, absl::string_view sql, int64_t owner,
                                         std::map<std::string, std::string>& user,
                                         std::map<std::string, std::string>& system) {
  Statement rows = database.Prepare(sql);
  rows.Bind(owner);
  return ForEachRow(rows, [&] { (rows.Bool(0) ? system : user)[rows.Text(1)] = rows.Text(2); });
}

}  // namespace hpo::server
