#include "server/scheduler/trial_scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/base/steady_wait.h"
#include "spdlog/spdlog.h"

namespace hpo {
namespace {

// How often an error that stays is logged.
constexpr absl::Duration kSayAgain = absl::Minutes(1);

}  // namespace

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

void TrialScheduler::TickLoop() {
  std::string said;
  absl::Duration said_at;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      AwaitSteadily(mutex_, absl::Condition(&stopping_), options_.tick_interval);
      if (stopping_) return;
    }
    const absl::Status ticked = Tick();
    // What is wrong with the whole database, the server says itself (server/health_log.h).
    if (ticked.ok() || !store_->trouble().empty()) {
      said.clear();
      continue;
    }
    const absl::Duration now = clock_.Monotonic();
    if (ticked.message() == said && now - said_at < kSayAgain) continue;
    said = std::string(ticked.message());
    said_at = now;
    spdlog::error("leases not checked: {}", said);
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
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, why] : unreadable_) names.push_back(name);
  return names;
}

absl::StatusOr<StudyRuntime*> TrialScheduler::FindStudy(const std::string& name) const {
  const std::vector<StudyRuntime*> studies = Studies();
  if (name.empty() && studies.size() == 1) return studies.front();
  for (StudyRuntime* study : studies) {
    if (study->name() == name) return study;
  }
  {
    absl::MutexLock lock(&mutex_);
    if (const auto found = unreadable_.find(name); found != unreadable_.end()) {
      return absl::DataLossError(
          absl::StrCat("study '", name, "': its stored row cannot be read: ", found->second));
    }
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
