#include "server/scheduler/trial_scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "spdlog/spdlog.h"

namespace hpo {

absl::StatusOr<std::unique_ptr<TrialScheduler>> TrialScheduler::Create(std::unique_ptr<Store> store,
                                                                       const Clock& clock,
                                                                       SchedulerOptions options) {
  std::unique_ptr<TrialScheduler> scheduler(
      new TrialScheduler(std::move(store), clock, std::move(options)));
  HPO_RETURN_IF_ERROR(scheduler->Load());
  if (scheduler->options_.tick_interval > absl::ZeroDuration()) {
    scheduler->ticker_ = std::thread([raw = scheduler.get()] { raw->TickLoop(); });
  }
  return scheduler;
}

TrialScheduler::TrialScheduler(std::unique_ptr<Store> store, const Clock& clock,
                               SchedulerOptions options)
    : store_(std::move(store)),
      clock_(clock),
      options_(std::move(options)),
      workers_(clock, options_.lease),
      writer_(
          *store_, clock, calibration_, [this] { WakeAll(); }, options_.on_trial_changed) {}

TrialScheduler::~TrialScheduler() {
  Drain();
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (ticker_.joinable()) ticker_.join();
  for (StudyRuntime* study : Studies()) {
    study->Account(clock_.Monotonic());
    if (const absl::Status stored = StoreWallClock(*study); !stored.ok()) {
      spdlog::error("{}: wall clock not stored: {}", study->name(), stored.ToString());
    }
  }
}

absl::Status TrialScheduler::Load() {
  const auto work = [this](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(epoch_, StudyStore(database).BeginEpoch(clock_.Now()));
    HPO_ASSIGN_OR_RETURN(database_, StudyStore(database).DatabaseId());
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store_->Write(work));
  return store_->Read([this](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(token_secret_, StudyStore(database).TokenSecret());
    HPO_ASSIGN_OR_RETURN(std::vector<StudyRecord> records, StudyStore(database).LoadAll());
    for (StudyRecord& record : records) {
      HPO_RETURN_IF_ERROR(LoadStudy(database, std::move(record)));
    }
    for (StudyRuntime* study : Studies()) {
      if (study->priors().empty()) continue;
      HPO_ASSIGN_OR_RETURN(std::vector<PriorStudy> priors,
                           CollectPriors(study->spec(), study->priors()));
      study->ReplaceSpec(study->spec(), study->priors(), std::move(priors));
    }
    HPO_ASSIGN_OR_RETURN(const auto residuals, CalibrationStore(database).LoadAll());
    for (const auto& [taught, residual] : residuals) calibration_.Publish(taught, residual);
    HPO_ASSIGN_OR_RETURN(const int64_t version, StudyStore(database).StudiesVersion());
    absl::MutexLock lock(&mutex_);
    studies_version_ = version;
    return absl::OkStatus();
  });
}

absl::Status TrialScheduler::LoadStudy(Database& database, StudyRecord record) {
  const TrialStore trials(database, record.id, record.spec.name);
  auto study = std::make_unique<StudyRuntime>(std::move(record), options_.factories);
  HPO_ASSIGN_OR_RETURN(const std::vector<TrialRecord> stored, trials.LoadAllBySequence());
  const absl::Duration now = clock_.Monotonic();
  for (const TrialRecord& trial : stored) {
    HPO_ASSIGN_OR_RETURN(const TrialChange change, LoadChange(trials, trial.trial.id.number,
                                                              trial.last_sequence, "restored"));
    study->Publish(change, now, RenewedByRestart(now, options_.lease));
    if (change.lease) {
      workers_.RestoreName(
          {.name = change.lease->attempt.worker, .instance_key = change.lease->instance_key});
    }
  }
  absl::MutexLock lock(&mutex_);
  studies_.push_back(std::move(study));
  return absl::OkStatus();
}

void TrialScheduler::TickLoop() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.tick_interval);
      if (stopping_) return;
    }
    if (const absl::Status ticked = Tick(); !ticked.ok()) {
      spdlog::error("leases not checked: {}", ticked.ToString());
    }
  }
}

void TrialScheduler::Drain() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
  ++generation_;
}

bool TrialScheduler::draining() const {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

void TrialScheduler::WakeAll() {
  absl::MutexLock lock(&mutex_);
  ++generation_;
}

std::vector<StudyRuntime*> TrialScheduler::Studies() const {
  absl::MutexLock lock(&mutex_);
  std::vector<StudyRuntime*> studies;
  for (const auto& study : studies_) studies.push_back(study.get());
  return studies;
}

int64_t TrialScheduler::studies_version() const {
  absl::MutexLock lock(&mutex_);
  return studies_version_;
}

std::vector<std::string> TrialScheduler::StudyNames() const {
  std::vector<std::string> names;
  for (const StudyRuntime* study : Studies()) names.push_back(study->name());
  return names;
}

absl::StatusOr<StudyRuntime*> TrialScheduler::FindStudy(const std::string& name) const {
  const std::vector<StudyRuntime*> studies = Studies();
  if (name.empty() && studies.size() == 1) return studies.front();
  for (StudyRuntime* study : studies) {
    if (study->name() == name) return study;
  }
  const std::vector<std::string> names = StudyNames();
  return absl::NotFoundError(
      absl::StrCat("study '", name, "': expected ",
                   names.empty() ? "a study, but there is none"
                                 : absl::StrCat("one of ", absl::StrJoin(names, ", "))));
}

absl::Status TrialScheduler::ReadTrials(
    const StudyRuntime& study, const std::function<absl::Status(const TrialStore&)>& read) const {
  return store_->Read(
      [&](Database& database) { return read(TrialStore(database, study.id(), study.name())); });
}

}  // namespace hpo
