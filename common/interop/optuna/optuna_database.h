// What writing and reading a file of Optuna's have in common. One owner; not thread-safe.
#pragma once

#include <sqlite3.h>

#include <memory>

#include "nlohmann/json_fwd.hpp"

namespace hpo {

constexpr int kOptunaSchema = 12;

// A prepared statement, finalized at the end of its scope.
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using StatementPointer = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// `sql` with `values`, an array of texts, numbers and nulls, in the places of its question marks;
// null where it is not valid for the database.
StatementPointer BindStatement(sqlite3* database, const char* sql, const nlohmann::json& values);

}  // namespace hpo
