// Tested by tests/server/scheduler/restart_test.cc.
#include "server/studies/study_loader.h"

#include <set>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "server/storage/calibration_store.h"
#include "server/storage/study_rows.h"
#include "server/storage/study_store.h"
#include "server/studies/trial_writer.h"
#include "server/studies/warm_start.h"
#include "server/workers/lease.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
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
  std::vector<sampler::PriorStudy> priors;
  for (const StudyPrior& prior : study.priors()) {
    const StudyRuntime* const earlier = FindIn(studies, prior.study);
    if (earlier == nullptr) {
      spdlog::error("study {}: starts without study {}, which cannot be read", study.name(),
                    prior.study);
      continue;
    }
    absl::StatusOr<sampler::PriorStudy> taken =
        ToPriorStudy(spec, {earlier->spec(), earlier->history()}, prior);
    if (taken.ok()) priors.push_back(*std::move(taken));
  }
  study.ReplaceSpec(spec, study.priors(), std::move(priors));
}

absl::StatusOr<std::unique_ptr<StudyRuntime>> Load(SchedulerState& state, Database& database,
                                                   StudyRecord record) {
  const StudyRows rows(database, record.id, record.spec.name);
  auto study = std::make_unique<StudyRuntime>(std::move(record), state.options.factories);
  HPO_ASSIGN_OR_RETURN(std::vector<DryRunRecord> dry_runs, rows.dry_runs.LoadAll());
  study->dry_runs.Add(std::move(dry_runs));
  HPO_ASSIGN_OR_RETURN(const std::vector<TrialStore::LastEvent> events, rows.trials.LastEvents());
  const absl::Duration now = state.clock.Monotonic();
  for (const auto& [number, sequence] : events) {
    const absl::StatusOr<TrialChange> change = LoadChange(rows, number, sequence, "restored");
    if (study->QuarantineIfUnreadable(number, change.status())) continue;
    HPO_RETURN_IF_ERROR(change.status());
    study->Publish(*change, now, RenewedByRestart(now, state.options.lease));
    if (!change->lease) continue;
    const NamedProcess holder{.name = change->lease->attempt.worker,
                              .instance_key = change->lease->instance_key};
    HPO_ASSIGN_OR_RETURN(const ProcessIdentity identity,
                         StudyStore(database).LoadProcess(holder.name, holder.instance_key));
    state.workers.RestoreName(holder, identity);
  }
  return study;
}

}  // namespace

absl::StatusOr<CalibrationSnapshot> LoadCalibration(Database& database) {
  CalibrationSnapshot calibration;
  HPO_ASSIGN_OR_RETURN(const auto residuals, CalibrationStore(database).LoadAll());
  for (const auto& [version, residual] : residuals) {
    calibration.margins.Observe(residual);
    calibration.version = version;
  }
  return calibration;
}

absl::Status LoadStudies(SchedulerState& state, Database& database) {
  HPO_ASSIGN_OR_RETURN(StudyStore::Studies stored, StudyStore(database).LoadAll());
  LoadedStudies loaded;
  for (StudyRecord& record : stored.records) {
    const std::string name = record.spec.name;
    absl::StatusOr<std::unique_ptr<StudyRuntime>> study = Load(state, database, std::move(record));
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
  HPO_ASSIGN_OR_RETURN(std::set<std::string> drained, StudyStore(database).DrainedWorkers());
  state.drained.Replace(std::move(drained));
  state.calibration.Replace(std::move(calibration));
  state.studies.ReplaceAll({.studies = std::move(loaded),
                            .unreadable = std::move(stored.unreadable),
                            .version = version});
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StudyRuntime>> ReloadStudy(SchedulerState& state, Database& database,
                                                          int64_t study_id,
                                                          std::vector<sampler::PriorStudy> priors) {
  HPO_ASSIGN_OR_RETURN(StudyStore::Studies stored, StudyStore(database).LoadAll());
  for (StudyRecord& record : stored.records) {
    if (record.id != study_id) continue;
    HPO_ASSIGN_OR_RETURN(std::unique_ptr<StudyRuntime> fresh,
                         Load(state, database, std::move(record)));
    if (!priors.empty()) fresh->ReplaceSpec(fresh->spec(), fresh->priors(), std::move(priors));
    return fresh;
  }
  return absl::DataLossError("the study's row cannot be read");
}

absl::Status WriteAndRetire(SchedulerState& state, StudyRuntime& study,
                            const std::function<absl::Status(Database&)>& work,
                            const std::function<void()>& publish) {
  bool retired = false;
  const auto retiring = [&](Database& database) -> absl::Status {
    HPO_RETURN_IF_ERROR(study.CheckNotRetired());
    HPO_RETURN_IF_ERROR(work(database));
    // From here on nobody writes by what it knows.
    study.Retire();
    retired = true;
    return absl::OkStatus();
  };
  const absl::Status written = state.store->Write(retiring, publish);
  if (!written.ok() && retired) study.Unretire();
  return written;
}

}  // namespace hpo::server
