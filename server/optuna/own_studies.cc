#include "server/optuna/own_studies.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/api/page_token.h"
#include "server/storage/study_store.h"

namespace hpo {
namespace {

constexpr int kNumberBits = 28;
constexpr int64_t kMostNumber = (int64_t{1} << kNumberBits) - 1;
constexpr int kPageSize = 1000;

int64_t IdOfTrial(int64_t row, TrialNumber number) {
  return kFirstOwnId + (row << kNumberBits) + number.value;
}

int64_t RowOfStudy(int64_t study) { return study - kFirstOwnId; }
int64_t RowOfTrial(int64_t trial) { return (trial - kFirstOwnId) >> kNumberBits; }
TrialNumber NumberOf(int64_t trial) { return TrialNumber{(trial - kFirstOwnId) & kMostNumber}; }

absl::StatusOr<std::map<int64_t, std::string>> Names(const Store& store) {
  std::map<int64_t, std::string> names;
  HPO_RETURN_IF_ERROR(store.Read([&names](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(names, StudyStore(database).Names());
    return absl::OkStatus();
  }));
  return names;
}

absl::StatusOr<std::string> NameOfRow(const Store& store, int64_t row) {
  HPO_ASSIGN_OR_RETURN(const auto names, Names(store));
  const auto found = names.find(row);
  if (found != names.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("expected the id of a study, got that of row ", row));
}

OptunaStudySummary Summarize(int64_t row, const StudyStatus& status) {
  const StudySpec& spec = status.spec;
  OptunaStudySummary study{.id = kFirstOwnId + row, .name = spec.name};
  study.user_attributes = status.attributes;
  for (const Objective& objective : spec.objectives)
    study.directions.push_back(objective.direction);
  study.system_attributes[kOptunaMetricNames] = OptunaMetricNames(spec);
  return study;
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> OwnStudies::Find(const std::string& name) const {
  HPO_ASSIGN_OR_RETURN(const auto names, Names(store_));
  for (const auto& [row, known] : names) {
    if (known == name) return kFirstOwnId + row;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<OptunaStudySummary>> OwnStudies::List() const {
  HPO_ASSIGN_OR_RETURN(const auto names, Names(store_));
  std::vector<OptunaStudySummary> studies;
  for (const auto& [row, name] : names) {
    const absl::StatusOr<StudyStatus> study = api_.GetStudy(name);
    if (absl::IsNotFound(study.status()) || absl::IsDataLoss(study.status())) continue;
    HPO_RETURN_IF_ERROR(study.status());
    // One whose row cannot be read has no objectives; Optuna knows no such study.
    if (!study->spec.objectives.empty()) studies.push_back(Summarize(row, *study));
  }
  return studies;
}

absl::StatusOr<std::string> OwnStudies::NameOf(int64_t study) const {
  return NameOfRow(store_, RowOfStudy(study));
}

absl::StatusOr<std::string> OwnStudies::StudyOf(int64_t trial) const {
  return NameOfRow(store_, RowOfTrial(trial));
}

absl::StatusOr<OptunaStudySummary> OwnStudies::Get(int64_t study) const {
  HPO_ASSIGN_OR_RETURN(const std::string name, NameOf(study));
  HPO_ASSIGN_OR_RETURN(const StudyStatus status, api_.GetStudy(name));
  return Summarize(RowOfStudy(study), status);
}

absl::StatusOr<OptunaTrial> OwnStudies::Load(int64_t row, const StudySpec& spec,
                                             TrialNumber number) const {
  HPO_ASSIGN_OR_RETURN(const TrialView view, api_.GetTrial(spec.name, number));
  OptunaTrial trial = ToOptuna(spec, view);
  trial.id = IdOfTrial(row, number);
  return trial;
}

absl::StatusOr<int64_t> OwnStudies::FindTrial(int64_t study, int64_t number) const {
  HPO_ASSIGN_OR_RETURN(const std::string name, NameOf(study));
  if (number < 0 || number > kMostNumber) {
    return absl::NotFoundError(
        absl::StrCat("study ", name, ": expected the number of a trial, got ", number));
  }
  HPO_RETURN_IF_ERROR(api_.GetTrial(name, TrialNumber{number}).status());
  return IdOfTrial(RowOfStudy(study), TrialNumber{number});
}

absl::StatusOr<OptunaTrial> OwnStudies::GetTrial(int64_t trial) const {
  HPO_ASSIGN_OR_RETURN(const std::string name, StudyOf(trial));
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, api_.GetStudy(name));
  return Load(RowOfTrial(trial), study.spec, NumberOf(trial));
}

absl::Status OwnStudies::GetTrials(int64_t study, const OptunaTrialQuery& query,
                                   const TakeOptunaTrial& take) const {
  const int64_t row = RowOfStudy(study);
  HPO_ASSIGN_OR_RETURN(const std::string name, NameOf(study));
  HPO_ASSIGN_OR_RETURN(const StudyStatus status, api_.GetStudy(name));
  const std::set<int64_t> included(query.included.begin(), query.included.end());
  for (const int64_t id : included) {
    if (id > query.after) break;
    if (!IsOwnId(id) || RowOfTrial(id) != row) continue;
    absl::StatusOr<OptunaTrial> trial = Load(row, status.spec, NumberOf(id));
    if (absl::IsNotFound(trial.status())) continue;
    HPO_RETURN_IF_ERROR(trial.status());
    HPO_RETURN_IF_ERROR(take(*std::move(trial)));
  }
  const TrialFilter all;
  const int64_t last =
      std::clamp<int64_t>(query.after - IdOfTrial(row, TrialNumber{0}), -1, kMostNumber);
  std::string token = last < 0 ? "" : MakePageToken(name, all, TrialNumber{last});
  do {
    HPO_ASSIGN_OR_RETURN(const TrialPage page, api_.ListTrials(name, all, kPageSize, token));
    for (const Trial& listed : page.trials) {
      HPO_ASSIGN_OR_RETURN(OptunaTrial trial, Load(row, status.spec, listed.id.number));
      HPO_RETURN_IF_ERROR(take(std::move(trial)));
    }
    token = page.next_token;
  } while (!token.empty());
  return absl::OkStatus();
}

}  // namespace hpo
