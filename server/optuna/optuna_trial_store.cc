// Tested by tests/server/optuna/optuna_api_test.cc.
#include "server/optuna/optuna_trial_store.h"

#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_distribution.h"
#include "server/optuna/optuna_rows.h"

namespace hpo::server {
namespace {

absl::Status NoTrial(int64_t trial) {
  return absl::NotFoundError(absl::StrCat("expected the id of a trial, got ", trial));
}

}  // namespace

absl::StatusOr<int64_t> OptunaTrialStore::CreateTrial(int64_t study, const OptunaTrial& trial) {
  HPO_RETURN_IF_ERROR(studies_.RequireStudy(study));
  HPO_RETURN_IF_ERROR(studies_.CheckValues(study, trial.state, trial.values.size()));
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

absl::StatusOr<OptunaTrialStore::Place> OptunaTrialStore::FindOpen(int64_t trial) const {
  Statement row =
      database_.Prepare("SELECT study_id, state, number FROM optuna_trial WHERE id = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(trial).Next());
  if (!found) return NoTrial(trial);
  const std::optional<OptunaState> state = ParseOptunaState(row.Text(1));
  if (state && !IsFinished(*state)) return Place{.study = row.Int(0), .state = *state};
  return absl::FailedPreconditionError(absl::StrCat(
      "trial ", row.Int(2), ": expected one that has not finished, got ", row.Text(1)));
}

absl::StatusOr<int64_t> OptunaTrialStore::FindDistribution(int64_t study,
                                                           const OptunaParam& param) {
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

absl::Status OptunaTrialStore::PutParam(int64_t study, int64_t trial, const OptunaParam& param) {
  HPO_ASSIGN_OR_RETURN(const int64_t distribution, FindDistribution(study, param));
  return database_.Prepare("INSERT OR REPLACE INTO optuna_param VALUES (?1, ?2, ?3, ?4)")
      .Bind(trial, param.name, param.value, distribution)
      .Run();
}

absl::Status OptunaTrialStore::SetParam(int64_t trial, const OptunaParam& param) {
  HPO_ASSIGN_OR_RETURN(const Place place, FindOpen(trial));
  return Annotate(PutParam(place.study, trial, param), param.name);
}

absl::Status OptunaTrialStore::PutValues(int64_t trial, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    HPO_RETURN_IF_ERROR(database_.Prepare("INSERT OR REPLACE INTO optuna_value VALUES (?1, ?2, ?3)")
                            .Bind(trial, static_cast<int64_t>(i), values[i])
                            .Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> OptunaTrialStore::SetState(int64_t trial, OptunaState state,
                                                const std::vector<double>& values, absl::Time now) {
  HPO_ASSIGN_OR_RETURN(const Place place, FindOpen(trial));
  if (state == OptunaState::kRunning && place.state != OptunaState::kWaiting) return false;
  HPO_RETURN_IF_ERROR(studies_.CheckValues(place.study, state, values.size()));
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

absl::Status OptunaTrialStore::PutIntermediateValue(int64_t trial, int64_t step, double value) {
  // SQLite stores NaN as NULL.
  return database_.Prepare("INSERT OR REPLACE INTO optuna_intermediate_value VALUES (?1, ?2, ?3)")
      .Bind(trial, step, value)
      .Run();
}

absl::Status OptunaTrialStore::SetIntermediateValue(int64_t trial, int64_t step, double value) {
  HPO_RETURN_IF_ERROR(FindOpen(trial).status());
  return PutIntermediateValue(trial, step, value);
}

absl::Status OptunaTrialStore::PutTrialAttribute(int64_t trial, OptunaAttribute kind,
                                                 const std::string& key, const std::string& json) {
  return database_.Prepare("INSERT OR REPLACE INTO optuna_trial_attribute VALUES (?1, ?2, ?3, ?4)")
      .Bind(trial, kind == OptunaAttribute::kSystem, key, json)
      .Run();
}

absl::Status OptunaTrialStore::SetTrialAttribute(int64_t trial, OptunaAttribute kind,
                                                 const std::string& key, const std::string& json) {
  HPO_RETURN_IF_ERROR(FindOpen(trial).status());
  return PutTrialAttribute(trial, kind, key, json);
}

absl::StatusOr<int64_t> OptunaTrialStore::FindTrial(int64_t study, int64_t number) const {
  Statement row =
      database_.Prepare("SELECT id FROM optuna_trial WHERE study_id = ?1 AND number = ?2");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study, number).Next());
  if (found) return row.Int(0);
  return absl::NotFoundError(
      absl::StrCat("study ", study, ": expected the number of a trial, got ", number));
}

absl::StatusOr<OptunaTrial> OptunaTrialStore::ReadTrial(const Statement& row) const {
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
  HPO_RETURN_IF_ERROR(LoadOptunaAttributes(
      database_, "SELECT system, key, value FROM optuna_trial_attribute WHERE trial_id = ?1",
      trial.id, trial.user_attributes, trial.system_attributes));
  return trial;
}

absl::StatusOr<OptunaTrial> OptunaTrialStore::LoadTrial(int64_t trial) const {
  Statement row = database_.Prepare(
      "SELECT id, number, state, started, completed FROM optuna_trial WHERE id = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(trial).Next());
  if (!found) return NoTrial(trial);
  return ReadTrial(row);
}

absl::Status OptunaTrialStore::LoadTrials(int64_t study, const OptunaTrialQuery& query,
                                          const TakeOptunaTrial& take) const {
  HPO_RETURN_IF_ERROR(studies_.RequireStudy(study));
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

}  // namespace hpo::server
