// Tested by tests/server/optuna/optuna_api_test.cc.
#include "server/optuna/optuna_store.h"

#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_distribution.h"

namespace hpo {
namespace {

constexpr char kMinimize[] = "MINIMIZE";
constexpr char kMaximize[] = "MAXIMIZE";

absl::Status NoStudy(int64_t study) {
  return absl::NotFoundError(absl::StrCat("expected the id of a study, got ", study));
}

absl::Status NoTrial(int64_t trial) {
  return absl::NotFoundError(absl::StrCat("expected the id of a trial, got ", trial));
}

absl::Status NameTaken(const std::string& name) {
  return absl::AlreadyExistsError(
      absl::StrCat("expected a name that no study has, got ", Quoted(name)));
}

absl::StatusOr<std::vector<Direction>> ParseDirections(const std::string& text) {
  std::vector<Direction> directions;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    if (word != kMinimize && word != kMaximize) {
      return absl::DataLossError(absl::StrCat("expected stored directions, got ", Quoted(text)));
    }
    directions.push_back(word == kMinimize ? Direction::kMinimize : Direction::kMaximize);
  }
  return directions;
}

// All rows of `statement`, each through `take`.
absl::Status ForEachRow(Statement& statement, const std::function<void()>& take) {
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, statement.Next());
    if (!row) return absl::OkStatus();
    take();
  }
}

// Of `owner`, an id of the table's first column.
absl::Status LoadAttributes(Database& database, absl::string_view sql, int64_t owner,
                            std::map<std::string, std::string>& user,
                            std::map<std::string, std::string>& system) {
  Statement rows = database.Prepare(sql);
  rows.Bind(owner);
  return ForEachRow(rows, [&] { (rows.Bool(0) ? system : user)[rows.Text(1)] = rows.Text(2); });
}

}  // namespace

absl::StatusOr<int64_t> OptunaStore::CreateStudy(const std::string& name,
                                                 const std::vector<Direction>& directions) {
  Statement ours = database_.Prepare("SELECT 1 FROM study WHERE name = ?1");
  HPO_ASSIGN_OR_RETURN(const bool taken, ours.Bind(name).Next());
  if (taken) return NameTaken(name);
  const std::string text =
      absl::StrJoin(directions, ",", [](std::string* out, Direction direction) {
        out->append(direction == Direction::kMinimize ? kMinimize : kMaximize);
      });
  const absl::Status inserted =
      database_.Prepare("INSERT INTO optuna_study (name, directions) VALUES (?1, ?2)")
          .Bind(name, text)
          .Run();
  if (absl::IsAlreadyExists(inserted)) return NameTaken(name);
  HPO_RETURN_IF_ERROR(inserted);
  return database_.LastInsertId();
}

absl::Status OptunaStore::DeleteStudy(int64_t study) {
  HPO_RETURN_IF_ERROR(
      database_.Prepare("DELETE FROM optuna_study WHERE id = ?1").Bind(study).Run());
  return database_.NumChanged() > 0 ? absl::OkStatus() : NoStudy(study);
}

absl::Status OptunaStore::RequireStudy(int64_t study) const {
  Statement row = database_.Prepare("SELECT 1 FROM optuna_study WHERE id = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study).Next());
  return found ? absl::OkStatus() : NoStudy(study);
}

absl::Status OptunaStore::SetStudyAttribute(int64_t study, OptunaAttribute kind,
                                            const std::string& key, const std::string& json) {
  HPO_RETURN_IF_ERROR(RequireStudy(study));
  return database_.Prepare("INSERT OR REPLACE INTO optuna_study_attribute VALUES (?1, ?2, ?3, ?4)")
      .Bind(study, kind == OptunaAttribute::kSystem, key, json)
      .Run();
}

absl::StatusOr<int64_t> OptunaStore::FindStudy(const std::string& name) const {
  Statement row = database_.Prepare("SELECT id FROM optuna_study WHERE name = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(name).Next());
  if (found) return row.Int(0);
  return absl::NotFoundError(absl::StrCat("expected the name of a study, got ", Quoted(name)));
}

absl::StatusOr<OptunaStudySummary> OptunaStore::ReadStudy(const Statement& row) const {
  OptunaStudySummary study{.id = row.Int(0), .name = row.Text(1)};
  HPO_ASSIGN_OR_RETURN(study.directions, ParseDirections(row.Text(2)));
  HPO_RETURN_IF_ERROR(LoadAttributes(
      database_, "SELECT system, key, value FROM optuna_study_attribute WHERE study_id = ?1",
      study.id, study.user_attributes, study.system_attributes));
  return study;
}

absl::StatusOr<OptunaStudySummary> OptunaStore::LoadStudy(int64_t study) const {
  Statement row = database_.Prepare("SELECT id, name, directions FROM optuna_study WHERE id = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study).Next());
  if (!found) return NoStudy(study);
  return ReadStudy(row);
}

absl::StatusOr<std::vector<OptunaStudySummary>> OptunaStore::LoadStudies() const {
  std::vector<OptunaStudySummary> studies;
  Statement rows = database_.Prepare("SELECT id, name, directions FROM optuna_study ORDER BY id");
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return studies;
    HPO_ASSIGN_OR_RETURN(studies.emplace_back(), ReadStudy(rows));
  }
}

absl::StatusOr<int64_t> OptunaStore::CountObjectives(int64_t study) const {
  Statement row = database_.Prepare("SELECT directions FROM optuna_study WHERE id = ?1");
  HPO_RETURN_IF_ERROR(row.Bind(study).Next().status());
  HPO_ASSIGN_OR_RETURN(const std::vector<Direction> directions, ParseDirections(row.Text(0)));
  return static_cast<int64_t>(directions.size());
}

absl::Status OptunaStore::CheckValues(int64_t study, OptunaState state, size_t num_values) const {
  HPO_ASSIGN_OR_RETURN(const int64_t objectives, CountObjectives(study));
  const auto count = static_cast<int64_t>(num_values);
  if (count == objectives || (count == 0 && state != OptunaState::kComplete)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("values: expected ", objectives, ", one for each objective, got ", count));
}

absl::StatusOr<int64_t> OptunaStore::CreateTrial(int64_t study, const OptunaTrial& trial) {
  HPO_RETURN_IF_ERROR(RequireStudy(study));
  HPO_RETURN_IF_ERROR(CheckValues(study, trial.state, trial.values.size()));
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare("INSERT INTO optuna_trial (study_id, number, state, started, completed) "
                   "SELECT id, next_number, ?2, ?3, ?4 FROM optuna_study WHERE id = ?1")
          .Bind(study, Name(trial.state), trial.started, trial.completed)
          .Run());
  const int64_t id = database_.LastInsertId();
  HPO_RETURN_IF_ERROR(
      database_.Prepare("UPDATE optuna_study SET next_number = next_number + 1 WHERE id = ?1")
          .Bind(study)
          .Run());
  for (const OptunaParam& param : trial.params) {
    HPO_RETURN_IF_ERROR(Annotate(PutParam(study, id, param), param.name));
  }
  HPO_RETURN_IF_ERROR(PutValues(id, trial.values));
  for (const auto& [step, value] : trial.intermediate_values) {
    HPO_RETURN_IF_ERROR(PutIntermediateValue(id, step, value));
  }
  for (const auto& [key, json] : trial.user_attributes) {
    HPO_RETURN_IF_ERROR(PutTrialAttribute(id, OptunaAttribute::kUser, key, json));
  }
  for (const auto& [key, json] : trial.system_attributes) {
    HPO_RETURN_IF_ERROR(PutTrialAttribute(id, OptunaAttribute::kSystem, key, json));
  }
  return id;
}

absl::StatusOr<OptunaStore::Place> OptunaStore::FindOpen(int64_t trial) const {
  Statement row =
      database_.Prepare("SELECT study_id, state, number FROM optuna_trial WHERE id = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(trial).Next());
  if (!found) return NoTrial(trial);
  const std::optional<OptunaState> state = ParseOptunaState(row.Text(1));
  if (state && !IsFinished(*state)) return Place{.study = row.Int(0), .state = *state};
  return absl::FailedPreconditionError(absl::StrCat(
      "trial ", row.Int(2), ": expected one that has not finished, got ", row.Text(1)));
}

absl::StatusOr<int64_t> OptunaStore::FindDistribution(int64_t study, const OptunaParam& param) {
  HPO_ASSIGN_OR_RETURN(const OptunaDistribution given, ParseOptunaDistribution(param.distribution));
  HPO_RETURN_IF_ERROR(CheckOptunaValue(given, param.value));
  {
    Statement same = database_.Prepare(
        "SELECT id FROM optuna_distribution WHERE study_id = ?1 AND name = ?2 AND json = ?3");
    HPO_ASSIGN_OR_RETURN(const bool known, same.Bind(study, param.name, param.distribution).Next());
    if (known) return same.Int(0);
    Statement first = database_.Prepare(
        "SELECT json FROM optuna_distribution WHERE study_id = ?1 AND name = ?2 ORDER BY id "
        "LIMIT 1");
    HPO_ASSIGN_OR_RETURN(const bool follows, first.Bind(study, param.name).Next());
    if (follows) {
      HPO_ASSIGN_OR_RETURN(const OptunaDistribution stored, ParseOptunaDistribution(first.Text(0)));
      HPO_RETURN_IF_ERROR(CheckCompatible(stored, given));
    }
  }
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare("INSERT INTO optuna_distribution (study_id, name, json) VALUES (?1, ?2, ?3)")
          .Bind(study, param.name, param.distribution)
          .Run());
  return database_.LastInsertId();
}

absl::Status OptunaStore::PutParam(int64_t study, int64_t trial, const OptunaParam& param) {
  HPO_ASSIGN_OR_RETURN(const int64_t distribution, FindDistribution(study, param));
  return database_.Prepare("INSERT OR REPLACE INTO optuna_param VALUES (?1, ?2, ?3, ?4)")
      .Bind(trial, param.name, param.value, distribution)
      .Run();
}

absl::Status OptunaStore::SetParam(int64_t trial, const OptunaParam& param) {
  HPO_ASSIGN_OR_RETURN(const Place place, FindOpen(trial));
  return Annotate(PutParam(place.study, trial, param), param.name);
}

absl::Status OptunaStore::PutValues(int64_t trial, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    HPO_RETURN_IF_ERROR(database_.Prepare("INSERT OR REPLACE INTO optuna_value VALUES (?1, ?2, ?3)")
                            .Bind(trial, static_cast<int64_t>(i), values[i])
                            .Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> OptunaStore::SetState(int64_t trial, OptunaState state,
                                           const std::vector<double>& values, absl::Time now) {
  HPO_ASSIGN_OR_RETURN(const Place place, FindOpen(trial));
  if (state == OptunaState::kRunning && place.state != OptunaState::kWaiting) return false;
  HPO_RETURN_IF_ERROR(CheckValues(place.study, state, values.size()));
  HPO_RETURN_IF_ERROR(PutValues(trial, values));
  HPO_RETURN_IF_ERROR(
      database_
          .Prepare("UPDATE optuna_trial SET state = ?2, "
                   "started = CASE WHEN ?3 THEN ?5 ELSE started END, "
                   "completed = CASE WHEN ?4 THEN ?5 ELSE completed END WHERE id = ?1")
          .Bind(trial, Name(state), state == OptunaState::kRunning, IsFinished(state),
                OptunaTimeText(now))
          .Run());
  return true;
}

absl::Status OptunaStore::PutIntermediateValue(int64_t trial, int64_t step, double value) {
  // SQLite stores NaN as NULL.
  return database_.Prepare("INSERT OR REPLACE INTO optuna_intermediate_value VALUES (?1, ?2, ?3)")
      .Bind(trial, step, value)
      .Run();
}

absl::Status OptunaStore::SetIntermediateValue(int64_t trial, int64_t step, double value) {
  HPO_RETURN_IF_ERROR(FindOpen(trial).status());
  return PutIntermediateValue(trial, step, value);
}

absl::Status OptunaStore::PutTrialAttribute(int64_t trial, OptunaAttribute kind,
                                            const std::string& key, const std::string& json) {
  return database_.Prepare("INSERT OR REPLACE INTO optuna_trial_attribute VALUES (?1, ?2, ?3, ?4)")
      .Bind(trial, kind == OptunaAttribute::kSystem, key, json)
      .Run();
}

absl::Status OptunaStore::SetTrialAttribute(int64_t trial, OptunaAttribute kind,
                                            const std::string& key, const std::string& json) {
  HPO_RETURN_IF_ERROR(FindOpen(trial).status());
  return PutTrialAttribute(trial, kind, key, json);
}

absl::StatusOr<int64_t> OptunaStore::FindTrial(int64_t study, int64_t number) const {
  Statement row =
      database_.Prepare("SELECT id FROM optuna_trial WHERE study_id = ?1 AND number = ?2");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study, number).Next());
  if (found) return row.Int(0);
  return absl::NotFoundError(
      absl::StrCat("study ", study, ": expected the number of a trial, got ", number));
}

absl::StatusOr<OptunaTrial> OptunaStore::ReadTrial(const Statement& row) const {
  OptunaTrial trial{.id = row.Int(0), .number = row.Int(1)};
  const std::optional<OptunaState> state = ParseOptunaState(row.Text(2));
  if (!state) {
    return absl::DataLossError(absl::StrCat("expected a stored state, got ", Quoted(row.Text(2))));
  }
  trial.state = *state;
  trial.started = row.Text(3);
  trial.completed = row.Text(4);
  Statement params = database_.Prepare(
      "SELECT p.name, p.value, d.json FROM optuna_param p "
      "JOIN optuna_distribution d ON d.id = p.distribution_id WHERE p.trial_id = ?1");
  params.Bind(trial.id);
  HPO_RETURN_IF_ERROR(ForEachRow(params, [&] {
    trial.params.push_back({params.Text(0), params.Real(1), params.Text(2)});
  }));
  Statement values =
      database_.Prepare("SELECT value FROM optuna_value WHERE trial_id = ?1 ORDER BY objective");
  values.Bind(trial.id);
  HPO_RETURN_IF_ERROR(ForEachRow(values, [&] { trial.values.push_back(values.Real(0)); }));
  Statement steps =
      database_.Prepare("SELECT step, value FROM optuna_intermediate_value WHERE trial_id = ?1");
  steps.Bind(trial.id);
  HPO_RETURN_IF_ERROR(ForEachRow(steps, [&] {
    const double value = steps.IsNull(1) ? std::numeric_limits<double>::quiet_NaN() : steps.Real(1);
    trial.intermediate_values[steps.Int(0)] = value;
  }));
  HPO_RETURN_IF_ERROR(LoadAttributes(
      database_, "SELECT system, key, value FROM optuna_trial_attribute WHERE trial_id = ?1",
      trial.id, trial.user_attributes, trial.system_attributes));
  return trial;
}

absl::StatusOr<OptunaTrial> OptunaStore::LoadTrial(int64_t trial) const {
  Statement row = database_.Prepare(
      "SELECT id, number, state, started, completed FROM optuna_trial WHERE id = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(trial).Next());
  if (!found) return NoTrial(trial);
  return ReadTrial(row);
}

absl::Status OptunaStore::LoadTrials(int64_t study, const OptunaTrialQuery& query,
                                     const TakeOptunaTrial& take) const {
  HPO_RETURN_IF_ERROR(RequireStudy(study));
  const std::set<int64_t> included(query.included.begin(), query.included.end());
  for (const int64_t id : included) {
    if (id > query.after) break;
    Statement row = database_.Prepare(
        "SELECT id, number, state, started, completed FROM optuna_trial "
        "WHERE id = ?1 AND study_id = ?2");
    HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(id, study).Next());
    if (!found) continue;
    HPO_ASSIGN_OR_RETURN(OptunaTrial trial, ReadTrial(row));
    HPO_RETURN_IF_ERROR(take(std::move(trial)));
  }
  Statement rows = database_.Prepare(
      "SELECT id, number, state, started, completed FROM optuna_trial "
      "WHERE study_id = ?1 AND id > ?2 ORDER BY id");
  rows.Bind(study, query.after);
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    HPO_ASSIGN_OR_RETURN(OptunaTrial trial, ReadTrial(rows));
    HPO_RETURN_IF_ERROR(take(std::move(trial)));
  }
}

}  // namespace hpo
