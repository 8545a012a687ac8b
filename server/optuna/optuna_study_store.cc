// Tested by tests/server/optuna/optuna_api_test.cc.
#include "server/optuna/optuna_study_store.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "server/optuna/optuna_rows.h"

namespace hpo::server {
namespace {

constexpr char kMinimize[] = "MINIMIZE";
constexpr char kMaximize[] = "MAXIMIZE";

absl::Status NoStudy(int64_t study) {
  return absl::NotFoundError(absl::StrCat("expected the id of a study, got ", study));
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

}  // namespace

absl::StatusOr<int64_t> OptunaStudyStore::CreateStudy(const std::string& name,
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

absl::Status OptunaStudyStore::DeleteStudy(int64_t study) {
  HPO_RETURN_IF_ERROR(
      database_.Prepare("DELETE FROM optuna_study WHERE id = ?1").Bind(study).Run());
  return database_.NumChanged() > 0 ? absl::OkStatus() : NoStudy(study);
}

absl::Status OptunaStudyStore::RequireStudy(int64_t study) const {
  Statement row = database_.Prepare("SELECT 1 FROM optuna_study WHERE id = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study).Next());
  return found ? absl::OkStatus() : NoStudy(study);
}

absl::Status OptunaStudyStore::SetStudyAttribute(int64_t study, OptunaAttribute kind,
                                                 const std::string& key, const std::string& json) {
  HPO_RETURN_IF_ERROR(RequireStudy(study));
  return database_.Prepare("INSERT OR REPLACE INTO optuna_study_attribute VALUES (?1, ?2, ?3, ?4)")
      .Bind(study, kind == OptunaAttribute::kSystem, key, json)
      .Run();
}

absl::StatusOr<int64_t> OptunaStudyStore::FindStudy(const std::string& name) const {
  Statement row = database_.Prepare("SELECT id FROM optuna_study WHERE name = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(name).Next());
  if (found) return row.Int(0);
  return absl::NotFoundError(absl::StrCat("expected the name of a study, got ", Quoted(name)));
}

absl::StatusOr<OptunaStudySummary> OptunaStudyStore::ReadStudy(const Statement& row) const {
  OptunaStudySummary study{.id = row.Int(0), .name = row.Text(1)};
  HPO_ASSIGN_OR_RETURN(study.directions, ParseDirections(row.Text(2)));
  HPO_RETURN_IF_ERROR(LoadOptunaAttributes(
      database_, "SELECT system, key, value FROM optuna_study_attribute WHERE study_id = ?1",
      study.id, study.user_attributes, study.system_attributes));
  return study;
}

absl::StatusOr<OptunaStudySummary> OptunaStudyStore::LoadStudy(int64_t study) const {
  Statement row = database_.Prepare("SELECT id, name, directions FROM optuna_study WHERE id = ?1");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(study).Next());
  if (!found) return NoStudy(study);
  return ReadStudy(row);
}

absl::StatusOr<std::vector<OptunaStudySummary>> OptunaStudyStore::LoadStudies() const {
  std::vector<OptunaStudySummary> studies;
  Statement rows = database_.Prepare("SELECT id, name, directions FROM optuna_study ORDER BY id");
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return studies;
    HPO_ASSIGN_OR_RETURN(studies.emplace_back(), ReadStudy(rows));
  }
}

absl::StatusOr<int64_t> OptunaStudyStore::CountObjectives(int64_t study) const {
  Statement row = database_.Prepare("SELECT directions FROM optuna_study WHERE id = ?1");
  HPO_RETURN_IF_ERROR(row.Bind(study).Next().status());
  HPO_ASSIGN_OR_RETURN(const std::vector<Direction> directions, ParseDirections(row.Text(0)));
  return static_cast<int64_t>(directions.size());
}

absl::Status OptunaStudyStore::CheckValues(int64_t study, OptunaState state,
                                           size_t num_values) const {
  HPO_ASSIGN_OR_RETURN(const int64_t objectives, CountObjectives(study));
  const auto count = static_cast<int64_t>(num_values);
  if (count == objectives || (count == 0 && state != OptunaState::kComplete)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("values: expected ", objectives, ", one for each objective, got ", count));
}

}  // namespace hpo::server
