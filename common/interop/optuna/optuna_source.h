// One study in a file of Optuna's (SQLite, schema 12), as its rows. Reads only; one owner.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/space/params.h"
#include "nlohmann/json.hpp"

namespace hpo {

// One row of an answer, by column.
class OptunaRow {
 public:
  explicit OptunaRow(sqlite3_stmt* statement) : statement_(statement) {}

  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  double Real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string Text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

class OptunaSource {
 public:
  using TakeRow = std::function<absl::Status(const OptunaRow&)>;

  // The study `name` of the file `path`, or its only one.
  //   NotFound            no such file or study; several and no name: lists them
  //   FailedPrecondition  another database, another schema, or one that cannot be read
  static absl::StatusOr<OptunaSource> Open(const std::string& path, const std::string& name);

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }
  int64_t study_id() const { return study_id_; }

  // Calls `take` for each row; `values` stand in the places of the question marks.
  //   FailedPrecondition  the file cannot be read; also what `take` returns
  absl::Status Select(const char* sql, const nlohmann::json& values, const TakeRow& take) const;

  // "MINIMIZE" or "MAXIMIZE", by objective.
  absl::StatusOr<std::vector<std::string>> Directions() const;
  // The names of the objectives, a list; nullopt where the study has none.
  //   InvalidArgument  not JSON
  absl::StatusOr<std::optional<nlohmann::json>> MetricNames() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };

  explicit OptunaSource(const std::string& path) : path_(path) {}
  absl::Status OpenFile();
  absl::Status FindStudy(const std::string& name);

  std::string path_;
  std::string name_;
  std::unique_ptr<sqlite3, Close> database_;
  int64_t study_id_ = 0;
};

// What Optuna shows for a stored number, of a distribution in JSON.
//   InvalidArgument  no distribution, or a number that is none of its values
absl::StatusOr<ParamValue> OptunaValue(double stored, const nlohmann::json& distribution);

}  // namespace hpo
