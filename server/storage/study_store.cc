// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/study_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/protocol/worker_facts_fields.h"
#include "common/study/status_fields.h"
#include "common/study/study_json.h"
#include "common/study/trial_fields.h"
#include "nlohmann/json.hpp"
#include "server/storage/answer_store.h"
#include "server/storage/row_codec.h"

namespace hpo {

// Includes the search space and the constraints, which the list of fields of StudySpec leaves out.
template <>
struct JsonForm<StudySpec> {
  static nlohmann::json Write(const StudySpec& spec) { return StudyToJson(spec); }
  static absl::StatusOr<StudySpec> Read(const nlohmann::json& json) { return StudyFromJson(json); }
};

}  // namespace hpo

namespace hpo::server {

void VisitColumns(Is<StudyRecord> auto& study, auto visit) {
  visit({"id"}, study.id);
  visit({"spec"}, study.spec);
  visit({"created"}, study.created);
  visit({"next_number"}, study.next_number);
  visit({"num_budgeted"}, study.num_budgeted);
  visit({"last_sequence"}, study.last_sequence);
  visit({"wall_clock"}, study.wall_clock);
  visit({"study_order"}, study.order);
  visit({"failures_from"}, study.failures_from);
}

void VisitColumns(Is<StudyPrior> auto& prior, auto visit) {
  visit({"prior"}, prior.study);
  visit({"trials"}, prior.trials);
  visit({"num_skipped"}, prior.num_skipped);
  visit({"why_skipped"}, prior.why_skipped);
}

void VisitColumns(Is<StudyStore::Birth> auto& birth, auto visit) {
  visit({"id"}, birth.id);
  visit({"name"}, birth.name);
  visit({"created"}, birth.created);
}

void VisitColumns(Is<WorkerFacts> auto& facts, auto visit) {
  visit({"name"}, facts.worker);
  visit({"instance_key"}, facts.instance_key);
  visit({"version"}, facts.version);
  visit({"torch_build"}, facts.torch_build);
  visit({"trainer"}, facts.trainer);
  visit({"device"}, facts.device.name);
  visit({"capacity"}, facts.capacity);
  visit({"process"}, facts.process);
}

absl::StatusOr<int64_t> StudyStore::BeginEpoch(absl::Time now) {
  HPO_RETURN_IF_ERROR(AnswerStore(database_).ForgetOld(now));
  HPO_RETURN_IF_ERROR(database_.Prepare("UPDATE server SET epoch = epoch + 1").Run());
  Statement epoch = database_.Prepare("SELECT epoch FROM server");
  HPO_RETURN_IF_ERROR(epoch.Next().status());
  return epoch.Int(0);
}

absl::StatusOr<std::string> StudyStore::DatabaseId() const {
  Statement id = database_.Prepare("SELECT database FROM server");
  HPO_RETURN_IF_ERROR(id.Next().status());
  return id.Text(0);
}

absl::StatusOr<std::string> StudyStore::TokenSecret() const {
  Statement secret = database_.Prepare("SELECT token_secret FROM server");
  HPO_RETURN_IF_ERROR(secret.Next().status());
  return secret.Text(0);
}

absl::Status StudyStore::CheckNotOptunas(const std::string& name) const {
  Statement optunas = database_.Prepare("SELECT 1 FROM optuna_study WHERE name = ?1");
  HPO_ASSIGN_OR_RETURN(const bool taken, optunas.Bind(name).Next());
  if (!taken) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("study ", name,
                   ": expected a name that no study has, got that of an Optuna client's; choose "
                   "another, or delete that one with optuna.delete_study"));
}

absl::StatusOr<int64_t> StudyStore::Insert(const StudySpec& spec, absl::Time now) {
  HPO_RETURN_IF_ERROR(CheckNotOptunas(spec.name));
  HPO_RETURN_IF_ERROR(
      database_.Prepare("INSERT INTO study (name, spec, stated, created) VALUES (?1, ?2, ?2, ?3)")
          .Bind(spec.name, ToColumn(spec), now)
          .Run());
  const int64_t id = database_.LastInsertId();
  HPO_RETURN_IF_ERROR(BumpStudiesVersion());
  return id;
}

absl::Status StudyStore::UpdateSpec(int64_t study_id, const StudySpec& spec) {
  HPO_RETURN_IF_ERROR(database_.Prepare("UPDATE study SET spec = ?2 WHERE id = ?1")
                          .Bind(study_id, ToColumn(spec))
                          .Run());
  return BumpStudiesVersion();
}

absl::Status StudyStore::UpdateOrder(int64_t study_id, StudyOrder order,
                                     TrialNumber failures_from) {
  return database_.Prepare("UPDATE study SET study_order = ?2, failures_from = ?3 WHERE id = ?1")
      .Bind(study_id, Name(order), failures_from.value)
      .Run();
}

absl::Status StudyStore::RecordStated(int64_t study_id, const StudySpec& spec) {
  return database_.Prepare("UPDATE study SET stated = ?2 WHERE id = ?1")
      .Bind(study_id, ToColumn(spec))
      .Run();
}

absl::StatusOr<StudySpec> StudyStore::LoadStated(int64_t study_id) const {
  Statement row = database_.Prepare("SELECT stated FROM study WHERE id = ?1");
  row.Bind(study_id);
  HPO_RETURN_IF_ERROR(row.Next().status());
  return FromText<StudySpec>(row.Text(0), "stated");
}

absl::Status StudyStore::BumpStudiesVersion() {
  return database_.Prepare("UPDATE server SET studies_version = studies_version + 1").Run();
}

absl::StatusOr<std::vector<StudyStore::Birth>> StudyStore::Births() const {
  return SelectAll(database_, Birth(), "study ORDER BY id");
}

absl::StatusOr<int64_t> StudyStore::StudiesVersion() const {
  Statement version = database_.Prepare("SELECT studies_version FROM server");
  HPO_RETURN_IF_ERROR(version.Next().status());
  return version.Int(0);
}

absl::StatusOr<StudyRecord> StudyStore::ReadStudy(const Statement& row) const {
  HPO_ASSIGN_OR_RETURN(StudyRecord study, ReadRow<StudyRecord>(row));
  Statement data = database_.Prepare("SELECT file, digest FROM study_data WHERE study_id = ?1");
  data.Bind(study.id);
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool file, data.Next());
    if (!file) break;
    study.data_digests[data.Text(0)] = data.Text(1);
  }
  HPO_ASSIGN_OR_RETURN(study.priors, LoadPriors(study.id));
  return study;
}

absl::StatusOr<StudyStore::Studies> StudyStore::LoadAll() const {
  Studies studies;
  Statement rows = database_.Prepare(
      absl::StrCat("SELECT ", ColumnNames<StudyRecord>(), ", name FROM study ORDER BY id"));
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return studies;
    absl::StatusOr<StudyRecord> study = ReadStudy(rows);
    if (study.ok()) {
      studies.records.push_back(*std::move(study));
    } else if (absl::IsUnavailable(study.status())) {
      return study.status();
    } else {
      studies.unreadable[rows.Text(rows.num_columns() - 1)] = std::string(study.status().message());
    }
  }
}

absl::Status StudyStore::RecordPriors(int64_t study_id, const std::vector<StudyPrior>& priors) {
  HPO_RETURN_IF_ERROR(
      database_.Prepare("DELETE FROM study_prior WHERE study_id = ?1").Bind(study_id).Run());
  for (size_t i = 0; i < priors.size(); ++i) {
    HPO_RETURN_IF_ERROR(InsertRow(database_, "INSERT INTO study_prior",
                                  {{"study_id", study_id}, {"position", static_cast<int64_t>(i)}},
                                  priors[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StudyPrior>> StudyStore::LoadPriors(int64_t study_id) const {
  return SelectAll(database_, StudyPrior(), "study_prior WHERE study_id = ?1 ORDER BY position",
                   study_id);
}

absl::Status StudyStore::AddWallClock(int64_t study_id, absl::Duration used) {
  return database_.Prepare("UPDATE study SET wall_clock = wall_clock + ?2 WHERE id = ?1")
      .Bind(study_id, used)
      .Run();
}

absl::Status StudyStore::PinData(int64_t study_id, const std::string& study,
                                 const std::string& file, const std::string& digest) {
  HPO_RETURN_IF_ERROR(database_.Prepare("INSERT OR IGNORE INTO study_data VALUES (?1, ?2, ?3)")
                          .Bind(study_id, file, digest)
                          .Run());
  Statement pinned =
      database_.Prepare("SELECT digest FROM study_data WHERE study_id = ?1 AND file = ?2");
  HPO_RETURN_IF_ERROR(pinned.Bind(study_id, file).Next().status());
  if (pinned.Text(0) == digest) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("study ", study, ": data file ", file, ": expected digest ", pinned.Text(0),
                   " (the study was begun with it), got ", digest));
}

absl::Status StudyStore::UpsertWorker(const WorkerFacts& facts, absl::Time now) {
  return InsertRow(database_, "INSERT OR REPLACE INTO worker",
                   {{"registered", absl::ToUnixMicros(now)}}, facts);
}

absl::StatusOr<ProcessIdentity> StudyStore::LoadProcess(const std::string& worker,
                                                        const std::string& instance_key) const {
  Statement row =
      database_.Prepare("SELECT process FROM worker WHERE name = ?1 AND instance_key = ?2");
  HPO_ASSIGN_OR_RETURN(const bool found, row.Bind(worker, instance_key).Next());
  // Of an older server, or unreadable: as one of which nothing is known.
  return found ? FromText<ProcessIdentity>(row.Text(0), "process").value_or(ProcessIdentity{})
               : ProcessIdentity{};
}

absl::Status StudyStore::DrainWorker(const std::string& worker, absl::Time now) {
  return database_.Prepare("INSERT OR IGNORE INTO drained_worker VALUES (?1, ?2)")
      .Bind(worker, now)
      .Run();
}

absl::Status StudyStore::ResumeWorker(const std::string& worker) {
  return database_.Prepare("DELETE FROM drained_worker WHERE name = ?1").Bind(worker).Run();
}

absl::StatusOr<std::set<std::string>> StudyStore::DrainedWorkers() const {
  std::set<std::string> names;
  Statement row = database_.Prepare("SELECT name FROM drained_worker");
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool found, row.Next());
    if (!found) return names;
    names.insert(row.Text(0));
  }
}

}  // namespace hpo::server
