#include "common/interop/optuna/optuna_file.h"

#include <sqlite3.h>

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_database.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::json;

// Tables, columns and types as Optuna's migrations leave them.
constexpr char kTables[] = R"sql(
CREATE TABLE studies (study_id INTEGER NOT NULL PRIMARY KEY, study_name VARCHAR(512) NOT NULL);
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE TABLE version_info (version_info_id INTEGER NOT NULL PRIMARY KEY CHECK (version_info_id = 1),
  schema_version INTEGER, library_version VARCHAR(256));
CREATE TABLE study_directions (study_direction_id INTEGER NOT NULL PRIMARY KEY,
  direction VARCHAR(8) NOT NULL, study_id INTEGER NOT NULL REFERENCES studies (study_id),
  objective INTEGER NOT NULL, UNIQUE (study_id, objective));
CREATE TABLE study_user_attributes (study_user_attribute_id INTEGER NOT NULL PRIMARY KEY,
  study_id INTEGER REFERENCES studies (study_id), "key" VARCHAR(512), value_json TEXT,
  UNIQUE (study_id, "key"));
CREATE TABLE study_system_attributes (study_system_attribute_id INTEGER NOT NULL PRIMARY KEY,
  study_id INTEGER REFERENCES studies (study_id), "key" VARCHAR(512), value_json TEXT,
  UNIQUE (study_id, "key"));
CREATE TABLE trials (trial_id INTEGER NOT NULL PRIMARY KEY, number INTEGER,
  study_id INTEGER REFERENCES studies (study_id), state VARCHAR(8) NOT NULL,
  datetime_start DATETIME, datetime_complete DATETIME);
CREATE INDEX ix_trials_study_id ON trials (study_id);
CREATE TABLE trial_user_attributes (trial_user_attribute_id INTEGER NOT NULL PRIMARY KEY,
  trial_id INTEGER REFERENCES trials (trial_id), "key" VARCHAR(512), value_json TEXT,
  UNIQUE (trial_id, "key"));
CREATE TABLE trial_system_attributes (trial_system_attribute_id INTEGER NOT NULL PRIMARY KEY,
  trial_id INTEGER REFERENCES trials (trial_id), "key" VARCHAR(512), value_json TEXT,
  UNIQUE (trial_id, "key"));
CREATE TABLE trial_params (param_id INTEGER NOT NULL PRIMARY KEY,
  trial_id INTEGER REFERENCES trials (trial_id), param_name VARCHAR(512), param_value FLOAT,
  distribution_json TEXT, UNIQUE (trial_id, param_name));
CREATE TABLE trial_values (trial_value_id INTEGER NOT NULL PRIMARY KEY,
  trial_id INTEGER NOT NULL REFERENCES trials (trial_id), objective INTEGER NOT NULL, value FLOAT,
  value_type VARCHAR(7) NOT NULL, UNIQUE (trial_id, objective));
CREATE TABLE trial_intermediate_values (trial_intermediate_value_id INTEGER NOT NULL PRIMARY KEY,
  trial_id INTEGER NOT NULL REFERENCES trials (trial_id), step INTEGER NOT NULL,
  intermediate_value FLOAT, intermediate_value_type VARCHAR(7) NOT NULL, UNIQUE (trial_id, step));
CREATE TABLE trial_heartbeats (trial_heartbeat_id INTEGER NOT NULL PRIMARY KEY,
  trial_id INTEGER NOT NULL UNIQUE REFERENCES trials (trial_id), heartbeat DATETIME NOT NULL);
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
INSERT INTO version_info VALUES (1, 12, '5.0.0');
INSERT INTO alembic_version VALUES ('v3.2.0.a');
)sql";

constexpr const char* kTrialTables[] = {
    "trial_user_attributes", "trial_system_attributes",   "trial_params",
    "trial_values",          "trial_intermediate_values", "trial_heartbeats",
};
constexpr const char* kStudyTables[] = {"study_directions", "study_user_attributes",
                                        "study_system_attributes", "trials", "studies"};

// Numbers that are not finite have a type instead of a value.
const char* ValueType(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0.0 ? "INF_POS" : "INF_NEG";
  return "FINITE";
}

Json FiniteOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

absl::StatusOr<std::unique_ptr<OptunaFile>> OptunaFile::Begin(const std::string& path,
                                                              const StudySpec& study) {
  sqlite3* database = nullptr;
  const int opened = sqlite3_open(path.c_str(), &database);
  std::unique_ptr<OptunaFile> file(new OptunaFile(path, study, database));
  if (opened != SQLITE_OK) return file->Error("open");
  sqlite3_busy_timeout(database, 5000);
  HPO_RETURN_IF_ERROR(file->Run("BEGIN IMMEDIATE", Json::array()));
  HPO_RETURN_IF_ERROR(file->Prepare());
  HPO_RETURN_IF_ERROR(file->RemoveStudy());
  HPO_RETURN_IF_ERROR(file->WriteStudy());
  return file;
}

OptunaFile::~OptunaFile() { sqlite3_close(database_); }  // rolls back what is not committed

absl::Status OptunaFile::Error(absl::string_view doing) const {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", doing, " ", path_, ": ", sqlite3_errmsg(database_)));
}

absl::Status OptunaFile::Run(const char* sql, const Json& values) {
  const StatementPointer statement = BindStatement(database_, sql, values);
  if (statement == nullptr || sqlite3_step(statement.get()) != SQLITE_DONE) return Error("write");
  return absl::OkStatus();
}

absl::StatusOr<int64_t> OptunaFile::ReadInt(const char* sql, const Json& values) {
  const StatementPointer statement = BindStatement(database_, sql, values);
  if (statement == nullptr) return Error("read");
  const int code = sqlite3_step(statement.get());
  if (code == SQLITE_DONE) return 0;
  if (code != SQLITE_ROW) return Error("read");
  return sqlite3_column_int64(statement.get(), 0);
}

absl::Status OptunaFile::Prepare() {
  HPO_ASSIGN_OR_RETURN(const int64_t num_tables,
                       ReadInt("SELECT COUNT(*) FROM sqlite_master", Json::array()));
  if (num_tables == 0) {
    if (sqlite3_exec(database_, kTables, nullptr, nullptr, nullptr) == SQLITE_OK) {
      return absl::OkStatus();
    }
    return Error("write");
  }
  const auto schema = ReadInt("SELECT schema_version FROM version_info", Json::array());
  if (schema.ok() && *schema == kOptunaSchema) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path_, ": expected a new file or a database of Optuna's with schema ", kOptunaSchema,
      ", got ", schema.ok() ? absl::StrCat("schema ", *schema) : "another database"));
}

absl::Status OptunaFile::RemoveStudy() {
  HPO_ASSIGN_OR_RETURN(
      const int64_t id,
      ReadInt("SELECT study_id FROM studies WHERE study_name = ?", Json::array({study_.name})));
  if (id == 0) return absl::OkStatus();
  for (const char* table : kTrialTables) {
    const std::string sql =
        absl::StrCat("DELETE FROM ", table,
                     " WHERE trial_id IN (SELECT trial_id FROM trials WHERE study_id = ?)");
    HPO_RETURN_IF_ERROR(Run(sql.c_str(), Json::array({id})));
  }
  for (const char* table : kStudyTables) {
    const std::string sql = absl::StrCat("DELETE FROM ", table, " WHERE study_id = ?");
    HPO_RETURN_IF_ERROR(Run(sql.c_str(), Json::array({id})));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::WriteStudy() {
  HPO_RETURN_IF_ERROR(
      Run("INSERT INTO studies (study_name) VALUES (?)", Json::array({study_.name})));
  study_id_ = sqlite3_last_insert_rowid(database_);
  int objective_number = 0;
  for (const Objective& objective : study_.objectives) {
    const bool minimize = objective.direction == Direction::kMinimize;
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO study_directions (direction, study_id, objective) VALUES (?, ?, ?)",
            Json::array({minimize ? "MINIMIZE" : "MAXIMIZE", study_id_, objective_number++})));
  }
  return Run(
      "INSERT INTO study_system_attributes (study_id, \"key\", value_json) "
      "VALUES (?, ?, ?)",
      Json::array({study_id_, kOptunaMetricNames, OptunaMetricNames(study_)}));
}

absl::Status OptunaFile::Write(const TrialView& view) {
  const OptunaTrial trial = ToOptuna(study_, view);
  HPO_RETURN_IF_ERROR(
      Run("INSERT INTO trials (number, study_id, state, datetime_start, datetime_complete) "
          "VALUES (?, ?, ?, ?, ?)",
          Json::array({trial.number, study_id_, std::string(Name(trial.state)),
                       TextOrNull(trial.started), TextOrNull(trial.completed)})));
  const int64_t id = sqlite3_last_insert_rowid(database_);
  for (const OptunaParam& param : trial.params) {
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
            "VALUES (?, ?, ?, ?)",
            Json::array({id, param.name, param.value, param.distribution})));
  }
  HPO_RETURN_IF_ERROR(WriteNumbers(trial, id));
  for (const auto& [key, value] : trial.user_attributes) {
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_user_attributes (trial_id, \"key\", value_json) VALUES (?, ?, ?)",
            Json::array({id, key, value})));
  }
  for (const auto& [key, value] : trial.system_attributes) {
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) VALUES (?, ?, ?)",
            Json::array({id, key, value})));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::WriteStudyAttributes(const Attributes& attributes) {
  for (const auto& [key, value] : attributes) {
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES (?, ?, ?)",
            Json::array({study_id_, key, value})));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::WriteNumbers(const OptunaTrial& trial, int64_t trial_id) {
  for (size_t i = 0; i < trial.values.size(); ++i) {
    const double value = trial.values[i];
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, ?, ?, ?)",
            Json::array({trial_id, i, FiniteOrNull(value), ValueType(value)})));
  }
  for (const auto& [step, value] : trial.intermediate_values) {
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, "
            "intermediate_value_type) VALUES (?, ?, ?, ?)",
            Json::array({trial_id, step, FiniteOrNull(value), ValueType(value)})));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::Commit() { return Run("COMMIT", Json::array()); }

}  // namespace hpo
