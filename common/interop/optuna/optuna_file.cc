#include "common/interop/optuna/optuna_file.h"

#include <sqlite3.h>

#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/json_reader.h"
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

absl::string_view StateName(const Trial& trial) {
  switch (trial.state) {
    case TrialState::kQueued:
      return "WAITING";
    case TrialState::kRunning:
      return "RUNNING";
    case TrialState::kCompleted:
      return trial.demonstration ? "PRUNED" : "COMPLETE";
    case TrialState::kPruned:
      return "PRUNED";
    case TrialState::kFailed:
    case TrialState::kCancelled:
      return "FAIL";
  }
  return "";
}

Json TimeText(absl::Time time) {
  if (time == absl::InfinitePast()) return nullptr;
  return absl::FormatTime(kOptunaTime, time, absl::LocalTimeZone());
}

// Numbers that are not finite have a type instead of a value.
const char* ValueType(double value) {
  if (std::isnan(value)) return "NAN";
  if (std::isinf(value)) return value > 0.0 ? "INF_POS" : "INF_NEG";
  return "FINITE";
}

Json FiniteOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json DistributionJson(const FloatDomain& domain) {
  double high = domain.high;
  if (domain.step.has_value()) {
    high = domain.low + *domain.step * std::floor((high - domain.low) / *domain.step + 1e-8);
  }
  return {{"name", "FloatDistribution"},
          {"attributes",
           {{"low", domain.low},
            {"high", high},
            {"log", domain.log},
            {"step", domain.step.has_value() ? Json(*domain.step) : Json(nullptr)}}}};
}

Json DistributionJson(const IntDomain& domain) {
  const int64_t num_steps = (domain.high - domain.low) / domain.step;
  return {{"name", "IntDistribution"},
          {"attributes",
           {{"low", domain.low},
            {"high", domain.low + num_steps * domain.step},
            {"log", domain.log},
            {"step", domain.step}}}};
}

Json DistributionJson(const CategoricalDomain& domain) {
  Json choices = Json::array();
  for (const ParamValue& choice : domain.choices) choices.push_back(ParamToJson(choice));
  return {{"name", "CategoricalDistribution"}, {"attributes", {{"choices", std::move(choices)}}}};
}

// As Python's json writes it: a constraint that was not reported is infinitely exceeded.
std::string ConstraintsText(const std::vector<MetricConstraint>& constraints,
                            const Metrics& metrics) {
  return absl::StrCat(
      "[",
      absl::StrJoin(constraints, ", ",
                    [&metrics](std::string* out, const MetricConstraint& constraint) {
                      const double excess = ExcessOf(constraint, metrics);
                      out->append(std::isfinite(excess) ? DumpJson(excess) : "Infinity");
                    }),
      "]");
}

// A number, or the index of a choice; nullopt where the domain does not have it.
std::optional<double> StoredValue(const Domain& domain, const ParamValue& value) {
  const auto* categorical = std::get_if<CategoricalDomain>(&domain);
  if (categorical == nullptr) return AsNumber(value);
  for (size_t i = 0; i < categorical->choices.size(); ++i) {
    if (categorical->choices[i] == value) return static_cast<double>(i);
  }
  return std::nullopt;
}

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
  Json metrics = Json::array();
  for (const Objective& objective : study_.objectives) {
    const bool minimize = objective.direction == Direction::kMinimize;
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO study_directions (direction, study_id, objective) VALUES (?, ?, ?)",
            Json::array({minimize ? "MINIMIZE" : "MAXIMIZE", study_id_, metrics.size()})));
    metrics.push_back(objective.metric);
  }
  return Run(
      "INSERT INTO study_system_attributes (study_id, \"key\", value_json) "
      "VALUES (?, 'study:metric_names', ?)",
      Json::array({study_id_, DumpJson(metrics)}));
}

absl::Status OptunaFile::Write(const TrialView& view) {
  const Trial& trial = view.trial;
  std::string state(StateName(trial));
  if (state == "COMPLETE") {
    const Metrics& metrics = std::get<Completed>(*trial.outcome).metrics;
    for (const Objective& objective : study_.objectives) {
      const auto found = metrics.find(objective.metric);
      if (found == metrics.end() || std::isnan(found->second)) state = "FAIL";
    }
  }
  HPO_RETURN_IF_ERROR(
      Run("INSERT INTO trials (number, study_id, state, datetime_start, datetime_complete) "
          "VALUES (?, ?, ?, ?, ?)",
          Json::array({trial.id.number.value, study_id_, state, TimeText(trial.started),
                       TimeText(trial.ended)})));
  const int64_t id = sqlite3_last_insert_rowid(database_);
  HPO_RETURN_IF_ERROR(WriteParams(trial, id));
  HPO_RETURN_IF_ERROR(WriteValues(view, state, id));
  HPO_RETURN_IF_ERROR(WriteIntermediate(view, id));
  std::vector<std::pair<const char*, Json>> attributes = {{"hpo:sampler", view.sampler}};
  if (trial.outcome) attributes.emplace_back("hpo:outcome", OutcomeToJson(*trial.outcome));
  if (trial.demonstration) attributes.emplace_back("hpo:demonstration", true);
  HPO_RETURN_IF_ERROR(WriteAttributes(trial.attributes, id));
  for (const auto& [key, value] : attributes) {
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_user_attributes (trial_id, \"key\", value_json) VALUES (?, ?, ?)",
            Json::array({id, key, DumpJson(value)})));
  }
  const auto* completed = trial.outcome ? std::get_if<Completed>(&*trial.outcome) : nullptr;
  if (completed == nullptr || study_.constraints.empty()) return absl::OkStatus();
  return Run(
      "INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) "
      "VALUES (?, 'constraints', ?)",
      Json::array({id, ConstraintsText(study_.constraints, completed->metrics)}));
}

absl::Status OptunaFile::WriteStudyAttributes(const Attributes& attributes) {
  for (const auto& [key, value] : attributes) {
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES (?, ?, ?)",
            Json::array({study_id_, key, value})));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::WriteAttributes(const Attributes& attributes, int64_t trial_id) {
  for (const auto& [key, value] : attributes) {
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_user_attributes (trial_id, \"key\", value_json) VALUES (?, ?, ?)",
            Json::array({trial_id, key, value})));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::WriteParams(const Trial& trial, int64_t trial_id) {
  for (const auto& [name, value] : trial.params) {
    const Parameter* parameter = study_.space.Find(name);
    if (parameter == nullptr) continue;
    const std::optional<double> stored = StoredValue(parameter->domain, value);
    if (!stored.has_value()) continue;
    const Json distribution =
        std::visit([](const auto& domain) { return DistributionJson(domain); }, parameter->domain);
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) "
            "VALUES (?, ?, ?, ?)",
            Json::array({trial_id, name, *stored, DumpJson(distribution)})));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::WriteValues(const TrialView& view, absl::string_view state,
                                     int64_t trial_id) {
  std::vector<double> values;
  if (state == "COMPLETE") {
    const Metrics& metrics = std::get<Completed>(*view.trial.outcome).metrics;
    for (const Objective& objective : study_.objectives) {
      values.push_back(metrics.at(objective.metric));
    }
  } else if (state == "PRUNED" && study_.objectives.size() == 1 && !view.measurements.empty()) {
    const Metrics& metrics = view.measurements.back().metrics;
    const auto last = metrics.find(study_.objectives.front().metric);
    if (last != metrics.end() && !std::isnan(last->second)) values.push_back(last->second);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES (?, ?, ?, ?)",
            Json::array({trial_id, i, FiniteOrNull(values[i]), ValueType(values[i])})));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::WriteIntermediate(const TrialView& view, int64_t trial_id) {
  if (study_.objectives.size() != 1) return absl::OkStatus();
  std::set<int64_t> written;  // of several at one step, the first counts
  for (const Measurement& measurement : view.measurements) {
    const auto found = measurement.metrics.find(study_.objectives.front().metric);
    if (found == measurement.metrics.end() || !written.insert(measurement.step).second) continue;
    HPO_RETURN_IF_ERROR(
        Run("INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, "
            "intermediate_value_type) VALUES (?, ?, ?, ?)",
            Json::array({trial_id, measurement.step, FiniteOrNull(found->second),
                         ValueType(found->second)})));
  }
  return absl::OkStatus();
}

absl::Status OptunaFile::Commit() { return Run("COMMIT", Json::array()); }

}  // namespace hpo
