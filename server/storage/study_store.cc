// Tested by tests/server/storage/stores_test.cc.
#include "server/storage/study_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/protocol/worker_facts_fields.h"
#include "common/study/study_json.h"
#include "common/study/trial_fields.h"
#include "nlohmann/json.hpp"
#include "server/storage/answer_store.h"
#include "server/storage/row_codec.h"

namespace hpo::server {
namespace {

absl::StatusOr<StudySpec> SpecFromText(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::DataLossError("stored study: expected JSON");
  return StudyFromJson(json);
}

}  // namespace

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
          .Bind(spec.name, StudyToJson(spec).dump(), now)
          .Run());
  const int64_t id = database_.LastInsertId();
  HPO_RETURN_IF_ERROR(BumpStudiesVersion());
  return id;
}

absl::Status StudyStore::UpdateSpec(int64_t study_id, const StudySpec& spec) {
  HPO_RETURN_IF_ERROR(database_.Prepare("UPDATE study SET spec = ?2 WHERE id = ?1")
                          .Bind(study_id, StudyToJson(spec).dump())
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
      .Bind(study_id, StudyToJson(spec).dump())
      .Run();
}

absl::StatusOr<StudySpec> StudyStore::LoadStated(int64_t study_id) const {
  Statement row = database_.Prepare("SELECT stated FROM study WHERE id = ?1");
  row.Bind(study_id);
  HPO_RETURN_IF_ERROR(row.Next().status());
  return SpecFromText(row.Text(0));
}

absl::Status StudyStore::BumpStudiesVersion() {
  return database_.Prepare("UPDATE server SET studies_version = studies_version + 1").Run();
}

absl::StatusOr<std::vector<StudyStore::Birth>> StudyStore::Births() const {
  std::vector<Birth> births;
  Statement rows = database_.Prepare("SELECT id, name, created FROM study ORDER BY id");
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return births;
    births.push_back({.id = rows.Int(0), .name = rows.Text(1), .created = rows.Time(2)});
  }
}

absl::StatusOr<int64_t> StudyStore::StudiesVersion() const {
  Statement version = database_.Prepare("SELECT studies_version FROM server");
  HPO_RETURN_IF_ERROR(version.Next().status());
  return version.Int(0);
}

absl::StatusOr<StudyRecord> StudyStore::ReadStudy(const Statement& row) const {
  StudyRecord study;
  study.id = row.Int(0);
  HPO_ASSIGN_OR_RETURN(study.spec, SpecFromText(row.Text(1)));
  study.created = row.Time(2);
  study.next_number = row.Int(3);
  study.num_budgeted = row.Int(4);
  study.last_sequence = row.Int(5);
  study.wall_clock = absl::Microseconds(row.Int(6));
  const std::optional<StudyOrder> order = ParseStudyOrder(row.Text(7));
  if (!order) {
    return absl::DataLossError(absl::StrCat("expected an order, got '", row.Text(7), "'"));
  }
  study.order = *order;
  study.failures_from = TrialNumber{row.Int(8)};
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
      "SELECT id, spec, created, next_number, num_budgeted, last_sequence, wall_clock, "
      "study_order, failures_from, name FROM study ORDER BY id");
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return studies;
    absl::StatusOr<StudyRecord> study = ReadStudy(rows);
    if (study.ok()) {
      studies.records.push_back(*std::move(study));
    } else if (absl::IsUnavailable(study.status())) {
      return study.status();
    } else {
      studies.unreadable[rows.Text(9)] = std::string(study.status().message());
    }
  }
}

absl::Status StudyStore::RecordPriors(int64_t study_id, const std::vector<StudyPrior>& priors) {
  HPO_RETURN_IF_ERROR(
      database_.Prepare("DELETE FROM study_prior WHERE study_id = ?1").Bind(study_id).Run());
  for (size_t i = 0; i < priors.size(); ++i) {
    HPO_RETURN_IF_ERROR(database_.Prepare("INSERT INTO study_prior VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
                            .Bind(study_id, static_cast<int64_t>(i), priors[i].study,
                                  ToJson(priors[i].trials).dump(), priors[i].num_skipped,
                                  priors[i].why_skipped)
                            .Run());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<StudyPrior>> StudyStore::LoadPriors(int64_t study_id) const {
  std::vector<StudyPrior> priors;
  Statement rows = database_.Prepare(
      "SELECT prior, trials, num_skipped, why_skipped FROM study_prior WHERE study_id = ?1 ORDER "
      "BY position");
  rows.Bind(study_id);
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return priors;
    StudyPrior prior{
        .study = rows.Text(0), .num_skipped = rows.Int(2), .why_skipped = rows.Text(3)};
    HPO_ASSIGN_OR_RETURN(prior.trials,
                         FromText<std::vector<TrialNumber>>(rows.Text(1), "warm start's trials"));
    priors.push_back(std::move(prior));
  }
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
  return database_
      .Prepare("INSERT OR REPLACE INTO worker VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")
      .Bind(facts.worker, facts.instance_key, facts.version, facts.torch_build, facts.trainer,
            facts.device.name, facts.capacity, now, JsonText(ToJson(facts.process)))
      .Run();
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

}  // namespace hpo::server
