// Tested by tests/server/optuna/optuna_api_test.cc.
#include "server/optuna/own_studies.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/api/page_token.h"
#include "server/storage/study_store.h"

namespace hpo::server {
namespace {

constexpr int kNumberBits = 24;
constexpr int kTimeBits = 10;
constexpr int kRowBits = 18;
static_assert(kNumberBits + kTimeBits + kRowBits == 52);
constexpr int64_t kMostNumber = (int64_t{1} << kNumberBits) - 1;
constexpr int kPageSize = 1000;

int64_t IdOfTrial(int64_t key, TrialNumber number) {
  return kFirstOwnId + (key << kNumberBits) + number.value;
}

int64_t KeyOfStudy(int64_t study) { return study - kFirstOwnId; }
int64_t KeyOfTrial(int64_t trial) { return (trial - kFirstOwnId) >> kNumberBits; }
TrialNumber NumberOf(int64_t trial) { return TrialNumber{(trial - kFirstOwnId) & kMostNumber}; }

int64_t KeyOf(const StudyStore::Birth& study) {
  constexpr int64_t kTimeMask = (int64_t{1} << kTimeBits) - 1;
  return (study.id << kTimeBits) + (absl::ToUnixMicros(study.created) & kTimeMask);
}

// By key.
absl::StatusOr<std::map<int64_t, std::string>> Names(const Store& store) {
  std::map<int64_t, std::string> names;
  HPO_RETURN_IF_ERROR(store.Read([&names](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const std::vector<StudyStore::Birth> births,
                         StudyStore(database).Births());
    for (const StudyStore::Birth& study : births) {
      if (study.id < int64_t{1} << kRowBits) names[KeyOf(study)] = study.name;
    }
    return absl::OkStatus();
  }));
  return names;
}

absl::StatusOr<std::string> NameOfKey(const Store& store, int64_t key) {
  HPO_ASSIGN_OR_RETURN(const auto names, Names(store));
  const auto found = names.find(key);
  if (found != names.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("expected the id of a study, got ", kFirstOwnId + key));
}

OptunaStudySummary Summarize(int64_t key, const StudyStatus& status) {
  const StudySpec& spec = status.spec;
  OptunaStudySummary study{.id = kFirstOwnId + key, .name = spec.name};
  study.user_attributes = status.attributes;
  for (const Objective& objective : spec.objectives)
    study.directions.push_back(objective.direction);
  study.system_attributes[kOptunaMetricNames] = OptunaMetricNames(spec);
  return study;
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> OwnStudies::Find(const std::string& name) const {
  HPO_ASSIGN_OR_RETURN(const auto names, Names(store_));
  for (const auto& [key, known] : names) {
    if (known == name) return kFirstOwnId + key;
  }
  return std::nullopt;
}

absl::StatusOr<std::vector<OptunaStudySummary>> OwnStudies::List() const {
  HPO_ASSIGN_OR_RETURN(const auto names, Names(store_));
  std::vector<OptunaStudySummary> studies;
  for (const auto& [key, name] : names) {
    const absl::StatusOr<StudyStatus> study = queries_.GetStudy(name);
    if (absl::IsNotFound(study.status()) || absl::IsDataLoss(study.status())) continue;
    HPO_RETURN_IF_ERROR(study.status());
    // One whose row cannot be read has no objectives; Optuna knows no such study.
    if (!study->spec.objectives.empty()) studies.push_back(Summarize(key, *study));
  }
  return studies;
}

absl::StatusOr<std::string> OwnStudies::NameOf(int64_t study) const {
  return NameOfKey(store_, KeyOfStudy(study));
}

absl::StatusOr<std::string> OwnStudies::StudyOf(int64_t trial) const {
  return NameOfKey(store_, KeyOfTrial(trial));
}

absl::StatusOr<OptunaStudySummary> OwnStudies::Get(int64_t study) const {
  HPO_ASSIGN_OR_RETURN(const std::string name, NameOf(study));
  HPO_ASSIGN_OR_RETURN(const StudyStatus status, queries_.GetStudy(name));
  return Summarize(KeyOfStudy(study), status);
}

absl::StatusOr<OptunaTrial> OwnStudies::Load(int64_t key, const StudySpec& spec,
                                             TrialNumber number) const {
  HPO_ASSIGN_OR_RETURN(const TrialView view, queries_.GetTrial(spec.name, number));
  OptunaTrial trial = ToOptuna(spec, view);
  trial.id = IdOfTrial(key, number);
  return trial;
}

absl::StatusOr<int64_t> OwnStudies::FindTrial(int64_t study, int64_t number) const {
  HPO_ASSIGN_OR_RETURN(const std::string name, NameOf(study));
  if (number < 0 || number > kMostNumber) {
    return absl::NotFoundError(
        absl::StrCat("study ", name, ": expected the number of a trial, got ", number));
  }
  HPO_RETURN_IF_ERROR(queries_.GetTrial(name, TrialNumber{number}).status());
  return IdOfTrial(KeyOfStudy(study), TrialNumber{number});
}

absl::StatusOr<OptunaTrial> OwnStudies::GetTrial(int64_t trial) const {
  HPO_ASSIGN_OR_RETURN(const std::string name, StudyOf(trial));
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, queries_.GetStudy(name));
  return Load(KeyOfTrial(trial), study.spec, NumberOf(trial));
}

absl::Status OwnStudies::GetTrials(int64_t study, const OptunaTrialQuery& query,
                                   const TakeOptunaTrial& take) const {
  const int64_t key = KeyOfStudy(study);
  HPO_ASSIGN_OR_RETURN(const std::string name, NameOf(study));
  HPO_ASSIGN_OR_RETURN(const StudyStatus status, queries_.GetStudy(name));
  const std::set<int64_t> included(query.included.begin(), query.included.end());
  for (const int64_t id : included) {
    if (id > query.after) break;
    if (!IsOwnId(id) || KeyOfTrial(id) != key) continue;
    absl::StatusOr<OptunaTrial> trial = Load(key, status.spec, NumberOf(id));
    if (absl::IsNotFound(trial.status())) continue;
    HPO_RETURN_IF_ERROR(trial.status());
    HPO_RETURN_IF_ERROR(take(*std::move(trial)));
  }
  TrialQuery pages{.page_size = kPageSize};
  const int64_t first = IdOfTrial(key, TrialNumber{0});
  if (query.after >= first) {
    pages.page_token =
        MakePageToken(name, pages.filter, TrialNumber{std::min(query.after - first, kMostNumber)});
  }
  do {
    HPO_ASSIGN_OR_RETURN(const TrialPage page, queries_.ListTrials(name, pages));
    for (const Trial& listed : page.trials) {
      HPO_ASSIGN_OR_RETURN(OptunaTrial trial, Load(key, status.spec, listed.id.number));
      HPO_RETURN_IF_ERROR(take(std::move(trial)));
    }
    pages.page_token = page.next_token;
  } while (!pages.page_token.empty());
  return absl::OkStatus();
}

}  // namespace hpo::server
