// TrialScheduler: memory from rows, at the start and where a commit's fate was unknown.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/studies/warm_start.h"
#include "spdlog/spdlog.h"

namespace hpo {
namespace {

using LoadedStudies = std::vector<std::unique_ptr<StudyRuntime>>;

const StudyRuntime* FindIn(const LoadedStudies& studies, const std::string& name) {
  for (const auto& study : studies) {
    if (study->name() == name) return study.get();
  }
  return nullptr;
}

// Gives `study` what it starts from. An earlier study that cannot be read teaches nothing.
void GivePriors(StudyRuntime& study, const LoadedStudies& studies) {
  if (study.priors().empty()) return;
  const StudySpec spec = study.spec();
  std::vector<PriorStudy> priors;
  for (const StudyPrior& prior : study.priors()) {
    const StudyRuntime* const earlier = FindIn(studies, prior.study);
    if (earlier == nullptr) {
      spdlog::error("study {}: starts without study {}, which cannot be read", study.name(),
                    prior.study);
      continue;
    }
    priors.push_back(ToPriorStudy(spec, {earlier->spec(), earlier->history()}, prior));
  }
  study.ReplaceSpec(spec, study.priors(), std::move(priors));
}

}  // namespace

absl::Status TrialScheduler::Load() {
  const auto work = [this](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(epoch_, StudyStore(database).BeginEpoch(clock_.Now()));
    HPO_ASSIGN_OR_RETURN(database_, StudyStore(database).DatabaseId());
    HPO_ASSIGN_OR_RETURN(token_secret_, StudyStore(database).TokenSecret());
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store_->Write(work));
  return store_->Read([this](Database& database) { return LoadRows(database); });
}

absl::StatusOr<CalibrationSnapshot> TrialScheduler::LoadCalibration(Database& database) {
  CalibrationSnapshot calibration;
  HPO_ASSIGN_OR_RETURN(const auto residuals, CalibrationStore(database).LoadAll());
  for (const auto& [version, residual] : residuals) {
    calibration.margins.Observe(residual);
    calibration.version = version;
  }
  return calibration;
}

absl::Status TrialScheduler::CatchUp() {
  if (!store_->behind()) return absl::OkStatus();
  spdlog::error("the database holds a write that was told to have failed: reading it again");
  // Nobody is between the commit of a changed study and its publication.
  absl::MutexLock lock(&spec_mutex_);
  HPO_RETURN_IF_ERROR(store_->CatchUp([this](Database& database) { return LoadRows(database); }));
  WakeAll();
  return absl::OkStatus();
}

absl::Status TrialScheduler::LoadRows(Database& database) {
  HPO_ASSIGN_OR_RETURN(StudyStore::Studies stored, StudyStore(database).LoadAll());
  LoadedStudies loaded;
  for (StudyRecord& record : stored.records) {
    const std::string name = record.spec.name;
    absl::StatusOr<std::unique_ptr<StudyRuntime>> study = LoadStudy(database, std::move(record));
    if (absl::IsDataLoss(study.status())) {
      stored.unreadable[name] = std::string(study.status().message());
      continue;
    }
    HPO_RETURN_IF_ERROR(study.status());
    loaded.push_back(*std::move(study));
  }
  for (const auto& [name, why] : stored.unreadable) {
    spdlog::error("study {} is left out, as its rows cannot be read: {}", name, why);
  }
  for (const auto& study : loaded) GivePriors(*study, loaded);
  HPO_ASSIGN_OR_RETURN(CalibrationSnapshot calibration, LoadCalibration(database));
  HPO_ASSIGN_OR_RETURN(const int64_t version, StudyStore(database).StudiesVersion());
  calibration_.Replace(std::move(calibration));
  absl::MutexLock lock(&mutex_);
  for (std::unique_ptr<StudyRuntime>& study : studies_) {
    study->Retire();
    retired_.push_back(std::move(study));
  }
  studies_ = std::move(loaded);
  unreadable_ = std::move(stored.unreadable);
  studies_version_ = version;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StudyRuntime>> TrialScheduler::LoadStudy(Database& database,
                                                                        StudyRecord record) {
  const TrialStore trials(database, record.id, record.spec.name);
  auto study = std::make_unique<StudyRuntime>(std::move(record), options_.factories);
  HPO_ASSIGN_OR_RETURN(const std::vector<TrialStore::LastEvent> events, trials.LastEvents());
  const absl::Duration now = clock_.Monotonic();
  for (const auto& [number, sequence] : events) {
    const absl::StatusOr<TrialChange> change = LoadChange(trials, number, sequence, "restored");
    if (Quarantined(*study, number, change.status())) continue;
    HPO_RETURN_IF_ERROR(change.status());
    study->Publish(*change, now, RenewedByRestart(now, options_.lease));
    if (change->lease) {
      workers_.RestoreName(
          {.name = change->lease->attempt.worker, .instance_key = change->lease->instance_key});
    }
  }
  return study;
}

bool TrialScheduler::Quarantined(StudyRuntime& study, TrialNumber trial,
                                 const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return false;
  spdlog::error("study {} trial #{} is left alone, as its rows cannot be read: {}", study.name(),
                trial.value, std::string(status.message()));
  study.Quarantine(trial, std::string(status.message()));
  return true;
}

}  // namespace hpo
