// Tested by tests/server/scheduler/archive_test.cc.
#include "server/orders/study_archiver.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/files/sha256.h"
#include "server/storage/attempt_store.h"
#include "server/storage/study_store.h"
#include "server/studies/study_loader.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

absl::StatusOr<std::string> DigestOf(Database& database, const StudyRuntime& study) {
  Sha256 digest;
  const ArchiveSink take = [&digest](absl::string_view line) {
    digest.Update(line);
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(WriteStudyArchive(database, study.id(), study.name(), take).status());
  return digest.HexDigest();
}

absl::Status MayNotGo(const StudyRuntime& study, absl::string_view expected,
                      absl::string_view got) {
  return absl::FailedPreconditionError(
      absl::StrCat("study ", study.name(), ": expected ", expected, ", got ", got));
}

}  // namespace

absl::StatusOr<int64_t> StudyArchiver::ArchiveStudy(const std::string& name,
                                                    const ArchiveSink& take) const {
  HPO_ASSIGN_OR_RETURN(const StudyRuntime* const study, state_.studies.Find(name));
  int64_t num_trials = 0;
  const auto read = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(num_trials, WriteStudyArchive(database, study->id(), study->name(), take));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state_.store->Read(read));
  return num_trials;
}

absl::StatusOr<std::string> StudyArchiver::RestoreStudy(
    const std::string& name, const std::string& archive,
    const std::function<absl::Status(const StudySpec&)>& admit) {
  absl::MutexLock spec_lock(&state_.studies.change_mutex());
  std::unique_ptr<StudyRuntime> fresh;
  std::optional<CalibrationSnapshot> calibration;
  int64_t version = 0;
  std::string restored_name;
  const auto work = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(const RestoredStudy restored, InsertStudyArchive(database, name, archive));
    HPO_RETURN_IF_ERROR(StudyStore(database).CheckNotOptunas(restored.name));
    HPO_ASSIGN_OR_RETURN(fresh, ReloadStudy(state_, database, restored.id, {}));
    if (const std::string unreadable = fresh->unreadable(); !unreadable.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("archive: ", unreadable));
    }
    HPO_RETURN_IF_ERROR(ValidateStudy(fresh->spec()));
    HPO_RETURN_IF_ERROR(admit(fresh->spec()));
    if (fresh->name() != restored.name) {
      return absl::InvalidArgumentError(absl::StrCat("archive: expected the study ", restored.name,
                                                     ", got the file of ", fresh->name()));
    }
    restored_name = restored.name;
    HPO_ASSIGN_OR_RETURN(calibration, LoadCalibration(database));
    HPO_ASSIGN_OR_RETURN(version, StudyStore(database).StudiesVersion());
    return absl::OkStatus();
  };
  const auto publish = [&] {
    state_.calibration.Replace(*std::move(calibration));
    state_.studies.Add(std::move(fresh), version);
  };
  const absl::Status written = state_.store->Write(work, publish);
  if (absl::IsAlreadyExists(written)) {
    return absl::AlreadyExistsError(
        absl::StrCat("archive: expected a name that no study has, got one that exists; choose "
                     "another with --name"));
  }
  HPO_RETURN_IF_ERROR(written);
  spdlog::info("study {} restored from its archive", restored_name);
  return restored_name;
}

absl::Status StudyArchiver::CheckMayGo(Database& database, const StudyRuntime& study,
                                       const std::string& archive_sha256) const {
  HPO_ASSIGN_OR_RETURN(const std::vector<AttemptRecord> held,
                       AttemptStore(database, study.id(), study.name()).LoadLeases());
  if (!held.empty()) {
    return MayNotGo(
        study, "one without running trials",
        absl::StrCat("trial #", held.front().trial.value, " on ", held.front().attempt.worker,
                     "; run: hpo study stop ", study.name(), " --now"));
  }
  for (const StudyRuntime* other : state_.studies.All()) {
    for (const StudyPrior& prior : other->priors()) {
      if (prior.study != study.name()) continue;
      return MayNotGo(study, "one that no other study has for its warm start", other->name());
    }
  }
  if (archive_sha256.empty()) return absl::OkStatus();
  HPO_ASSIGN_OR_RETURN(const std::string now, DigestOf(database, study));
  if (now == archive_sha256) return absl::OkStatus();
  return MayNotGo(study, "the state of its archive", "later changes; try again");
}

absl::StatusOr<int64_t> StudyArchiver::DeleteStudy(const std::string& name,
                                                   const std::string& archive_sha256) {
  if (name.empty()) return absl::InvalidArgumentError("name: expected a study's name, got nothing");
  absl::MutexLock spec_lock(&state_.studies.change_mutex());
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(name));
  std::optional<CalibrationSnapshot> calibration;
  int64_t version = 0;
  const auto work = [&](Database& database) -> absl::Status {
    HPO_RETURN_IF_ERROR(CheckMayGo(database, *study, archive_sha256));
    HPO_RETURN_IF_ERROR(DeleteStudyRows(database, study->id()));
    HPO_ASSIGN_OR_RETURN(calibration, LoadCalibration(database));
    HPO_ASSIGN_OR_RETURN(version, StudyStore(database).StudiesVersion());
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(WriteAndRetire(state_, *study, work, [&] {
    state_.calibration.Replace(*std::move(calibration));
    state_.studies.Replace(*study, nullptr, version);
  }));
  spdlog::info("study {} deleted", study->name());
  return study->next_number().value;
}

}  // namespace hpo::server
