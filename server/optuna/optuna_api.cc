#include "server/optuna/optuna_api.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/interop/optuna/optuna_distribution.h"

namespace hpo::server {
namespace {

absl::Status ReadOnly(const std::string& study) {
  return absl::PermissionDeniedError(
      absl::StrCat("study ", study,
                   " is hpo-server's own: Optuna's clients read it, hpo and its workers change it; "
                   "for a study that Optuna runs take another name"));
}

absl::Status CheckJson(const std::string& key, const std::string& json) {
  return Annotate(ParsePythonJson(json).status(), absl::StrCat("attribute ", Quoted(key)));
}

absl::Status CheckValues(const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("values[", i, "]: expected a number, got nan"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTime(const char* field, const std::string& text) {
  absl::Time time;
  std::string error;
  if (text.empty() ||
      absl::ParseTime("%Y-%m-%d %H:%M:%E*S", text, absl::UTCTimeZone(), &time, &error)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": expected a time such as 2026-11-25 17:40:00.000001, got ", Quoted(text)));
}

absl::Status CheckTrial(const OptunaTrial& trial) {
  HPO_RETURN_IF_ERROR(CheckTime("datetime_start", trial.started));
  HPO_RETURN_IF_ERROR(CheckTime("datetime_complete", trial.completed));
  HPO_RETURN_IF_ERROR(CheckValues(trial.values));
  for (const auto* attributes : {&trial.user_attributes, &trial.system_attributes}) {
    for (const auto& [key, json] : *attributes) HPO_RETURN_IF_ERROR(CheckJson(key, json));
  }
  return absl::OkStatus();
}

// All of Optuna's rows, over one connection.
struct Optunas {
  explicit Optunas(Database& database) : studies(database), trials(database) {}

  OptunaStudyStore studies;
  OptunaTrialStore trials;
};

// `read` over one committed state of Optuna's studies.
template <typename Result>
absl::StatusOr<Result> ReadOptunas(
    const Store& store, const std::function<absl::StatusOr<Result>(const Optunas&)>& read) {
  Result result{};
  HPO_RETURN_IF_ERROR(store.Read([&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(result, read(Optunas(database)));
    return absl::OkStatus();
  }));
  return result;
}

template <typename Result>
absl::StatusOr<Result> WriteOptunas(Store& store,
                                    const std::function<absl::StatusOr<Result>(Optunas&)>& write) {
  Result result{};
  HPO_RETURN_IF_ERROR(store.Write([&](Database& database) -> absl::Status {
    Optunas optunas(database);
    HPO_ASSIGN_OR_RETURN(result, write(optunas));
    return absl::OkStatus();
  }));
  return result;
}

absl::Status WriteOptunas(Store& store, const std::function<absl::Status(Optunas&)>& write) {
  return store.Write([&](Database& database) {
    Optunas optunas(database);
    return write(optunas);
  });
}

}  // namespace

absl::Status OptunaApi::CheckStudyIsOptunas(int64_t study) const {
  if (!IsOwnId(study)) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const std::string name, own_.NameOf(study));
  return ReadOnly(name);
}

absl::Status OptunaApi::CheckTrialIsOptunas(int64_t trial) const {
  if (!IsOwnId(trial)) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const std::string name, own_.StudyOf(trial));
  return ReadOnly(name);
}

absl::StatusOr<int64_t> OptunaApi::CreateStudy(const std::string& name,
                                               const std::vector<Direction>& directions) {
  if (directions.empty()) {
    return absl::InvalidArgumentError("directions: expected at least one, got none");
  }
  return WriteOptunas<int64_t>(
      store_, [&](Optunas& optunas) { return optunas.studies.CreateStudy(name, directions); });
}

absl::Status OptunaApi::DeleteStudy(int64_t study) {
  HPO_RETURN_IF_ERROR(CheckStudyIsOptunas(study));
  return WriteOptunas(store_, [&](Optunas& optunas) { return optunas.studies.DeleteStudy(study); });
}

absl::Status OptunaApi::SetStudyAttribute(int64_t study, OptunaAttribute kind,
                                          const std::string& key, const std::string& json) {
  HPO_RETURN_IF_ERROR(CheckStudyIsOptunas(study));
  HPO_RETURN_IF_ERROR(CheckJson(key, json));
  return WriteOptunas(store_, [&](Optunas& optunas) {
    return optunas.studies.SetStudyAttribute(study, kind, key, json);
  });
}

absl::StatusOr<int64_t> OptunaApi::FindStudy(const std::string& name) const {
  HPO_ASSIGN_OR_RETURN(const std::optional<int64_t> own, own_.Find(name));
  if (own) return *own;
  return ReadOptunas<int64_t>(
      store_, [&](const Optunas& optunas) { return optunas.studies.FindStudy(name); });
}

absl::StatusOr<OptunaStudySummary> OptunaApi::GetStudy(int64_t study) const {
  if (IsOwnId(study)) return own_.Get(study);
  return ReadOptunas<OptunaStudySummary>(
      store_, [&](const Optunas& optunas) { return optunas.studies.LoadStudy(study); });
}

absl::StatusOr<std::vector<OptunaStudySummary>> OptunaApi::ListStudies() const {
  using Studies = std::vector<OptunaStudySummary>;
  HPO_ASSIGN_OR_RETURN(Studies studies, ReadOptunas<Studies>(store_, [](const Optunas& optunas) {
                         return optunas.studies.LoadStudies();
                       }));
  HPO_ASSIGN_OR_RETURN(Studies own, own_.List());
  for (OptunaStudySummary& study : own) studies.push_back(std::move(study));
  return studies;
}

absl::StatusOr<int64_t> OptunaApi::StartTrial(int64_t study) {
  return CreateTrial(study, OptunaTrial{.started = OptunaTimeText(clock_.Now())});
}

absl::StatusOr<int64_t> OptunaApi::CreateTrial(int64_t study, const OptunaTrial& trial) {
  HPO_RETURN_IF_ERROR(CheckStudyIsOptunas(study));
  HPO_RETURN_IF_ERROR(CheckTrial(trial));
  return WriteOptunas<int64_t>(
      store_, [&](Optunas& optunas) { return optunas.trials.CreateTrial(study, trial); });
}

absl::Status OptunaApi::SetParam(int64_t trial, const OptunaParam& param) {
  HPO_RETURN_IF_ERROR(CheckTrialIsOptunas(trial));
  return WriteOptunas(store_,
                      [&](Optunas& optunas) { return optunas.trials.SetParam(trial, param); });
}

absl::StatusOr<bool> OptunaApi::SetState(int64_t trial, OptunaState state,
                                         const std::vector<double>& values) {
  HPO_RETURN_IF_ERROR(CheckTrialIsOptunas(trial));
  HPO_RETURN_IF_ERROR(CheckValues(values));
  return WriteOptunas<bool>(store_, [&](Optunas& optunas) {
    return optunas.trials.SetState(trial, state, values, clock_.Now());
  });
}

absl::Status OptunaApi::SetIntermediateValue(int64_t trial, int64_t step, double value) {
  HPO_RETURN_IF_ERROR(CheckTrialIsOptunas(trial));
  return WriteOptunas(store_, [&](Optunas& optunas) {
    return optunas.trials.SetIntermediateValue(trial, step, value);
  });
}

absl::Status OptunaApi::SetTrialAttribute(int64_t trial, OptunaAttribute kind,
                                          const std::string& key, const std::string& json) {
  HPO_RETURN_IF_ERROR(CheckTrialIsOptunas(trial));
  HPO_RETURN_IF_ERROR(CheckJson(key, json));
  return WriteOptunas(store_, [&](Optunas& optunas) {
    return optunas.trials.SetTrialAttribute(trial, kind, key, json);
  });
}

absl::StatusOr<int64_t> OptunaApi::FindTrial(int64_t study, int64_t number) const {
  if (IsOwnId(study)) return own_.FindTrial(study, number);
  return ReadOptunas<int64_t>(
      store_, [&](const Optunas& optunas) { return optunas.trials.FindTrial(study, number); });
}

absl::StatusOr<OptunaTrial> OptunaApi::GetTrial(int64_t trial) const {
  if (IsOwnId(trial)) return own_.GetTrial(trial);
  return ReadOptunas<OptunaTrial>(
      store_, [&](const Optunas& optunas) { return optunas.trials.LoadTrial(trial); });
}

absl::Status OptunaApi::GetTrials(int64_t study, const OptunaTrialQuery& query,
                                  const TakeOptunaTrial& take) const {
  if (IsOwnId(study)) return own_.GetTrials(study, query, take);
  return store_.Read([&](Database& database) {
    return OptunaTrialStore(database).LoadTrials(study, query, take);
  });
}

}  // namespace hpo::server
