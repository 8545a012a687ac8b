// Tested by tests/server/scheduler/studies_test.cc.
#include "server/studies/study_runtime.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/trials/typed_params.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

constexpr size_t kUnreadableShown = 5;

std::string DescribeUnreadable(const std::map<TrialNumber, std::string>& unreadable) {
  std::vector<std::string> shown;
  for (const auto& [number, why] : unreadable) {
    if (shown.size() == kUnreadableShown) {
      shown.push_back(absl::StrCat(unreadable.size() - kUnreadableShown, " more"));
      break;
    }
    shown.push_back(absl::StrCat("trial #", number.value, ": ", why));
  }
  return absl::StrJoin(shown, "; ");
}

}  // namespace

StudyRuntime::StudyRuntime(StudyRecord record, const StudyFactories& factories)
    : open(record.wall_clock),
      sampler(factories.make_sampler(record.spec, {})),
      changes(record.last_sequence),
      id_(record.id),
      name_(record.spec.name),
      created_(record.created),
      factories_(factories),
      spec_(record.spec),
      priors_(record.priors),
      data_digests_(std::move(record.data_digests)),
      next_number_(record.next_number),
      num_budgeted_(record.num_budgeted),
      pruner_(factories.make_pruner(record.spec)),
      order_(record.order),
      failures_from_(record.failures_from) {}

StudySpec StudyRuntime::spec() const {
  absl::MutexLock lock(&mutex_);
  return spec_;
}

void StudyRuntime::SetSpec(const StudySpec& spec) {
  absl::MutexLock lock(&mutex_);
  // Sampler and pruner stay: what may change in a study (budget, added choices) reaches the sampler
  // with each ask's space.
  spec_ = spec;
  sampler.SpecChanged();
  undecided_ = true;
}

void StudyRuntime::ReplaceSpec(const StudySpec& spec, const std::vector<StudyPrior>& chosen,
                               std::vector<sampler::PriorStudy> priors) {
  absl::MutexLock propose_lock(&sampler.propose_mutex());
  absl::MutexLock lock(&mutex_);
  sampler.Replace(factories_.make_sampler(spec, std::move(priors)));
  pruner_ = factories_.make_pruner(spec);
  spec_ = spec;
  priors_ = chosen;
}

std::vector<StudyPrior> StudyRuntime::priors() const {
  absl::MutexLock lock(&mutex_);
  return priors_;
}

std::map<std::string, std::string> StudyRuntime::data_digests() const {
  absl::MutexLock lock(&mutex_);
  return data_digests_;
}

void StudyRuntime::PinData(const std::string& file, const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  data_digests_.emplace(file, digest);
}

absl::Status StudyRuntime::CheckNotRetired() const {
  if (!retired_.load()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("study ", name_, " was read again from the database; try again"));
}

void StudyRuntime::Publish(const TrialChange& change, absl::Duration now,
                           absl::Duration renewed_at) {
  absl::MutexLock lock(&mutex_);
  const Trial& trial = change.record.trial;
  if (trial.id.number.value >= next_number_) {
    next_number_ = trial.id.number.value + 1;
    if (!trial.demonstration && trial.budgeted) ++num_budgeted_;
  }
  open.Publish(change, now, renewed_at);
  durations.Publish(trial, change.record.current_attempt);
  changes.Reach(change.sequence);
  unreadable_.erase(trial.id.number);
  if (change.record.IsOpen()) {
    told_[trial.id.number] = {.attempt = change.record.ToldAttempt()};
  } else {
    told_.erase(trial.id.number);
  }
  if (trial.demonstration) return;
  sampler::HistoryEvent event{
      .sequence = change.sequence,
      .trial = sampler::ToHistory(trial, change.measurements, spec_.objectives, spec_.constraints)};
  history_.Apply(event);
  WarnIfNeverStopped(event.trial);
  // What the sampler's space no longer has teaches it nothing.
  if (IsWithin(spec_.space, trial.params)) {
    sampler.Observe(std::move(event));
    if (const auto told = told_.find(trial.id.number); told != told_.end()) {
      told->second.to_sampler = true;
    }
  }
  undecided_ = undecided_ || trial.outcome.has_value();
}

void StudyRuntime::WarnIfNeverStopped(const sampler::HistoryTrial& trial) {
  if (warned_of_pruner_ || trial.state != TrialState::kCompleted || trial.imported) return;
  const std::string why = sampler::WhyNeverStopped(trial, spec_.pruner);
  if (why.empty()) return;
  warned_of_pruner_ = true;
  spdlog::warn("study {}: {}", name_, why);
}

bool StudyRuntime::TakesMeasurementsOf(TrialNumber trial, AttemptNumber attempt) const {
  absl::MutexLock lock(&mutex_);
  const auto told = told_.find(trial);
  return told != told_.end() && told->second.attempt == attempt;
}

void StudyRuntime::PublishMeasured(const TrialMeasured& measured) {
  absl::MutexLock lock(&mutex_);
  changes.Reach(measured.sequence);
  const auto known = history_.trials().find(measured.trial);
  // Demonstrations are no part of the history.
  if (known == history_.trials().end()) return;
  const sampler::Reports reports = sampler::ReportsOf(measured.added, spec_.objectives.front());
  history_.ApplyReports(measured.sequence, measured.trial, reports);
  if (!IsWithin(spec_.space, known->second.params)) return;
  Told& told = told_[measured.trial];
  if (std::exchange(told.to_sampler, true)) {
    sampler.ObserveReports(measured.sequence, measured.trial, reports);
  } else {
    sampler.Observe({.sequence = measured.sequence, .trial = known->second});
  }
}

void StudyRuntime::TakeOrder(const OrderedStudy& ordered) {
  absl::MutexLock lock(&mutex_);
  order_ = ordered.order;
  failures_from_ = ordered.failures_from;
  changes.Reach(ordered.sequence);
  undecided_ = true;
}

bool StudyRuntime::QuarantineIfUnreadable(TrialNumber trial, const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return false;
  spdlog::error("study {} trial #{} is left alone, as its rows cannot be read: {}", name_,
                trial.value, std::string(status.message()));
  absl::MutexLock lock(&mutex_);
  open.Forget(trial);
  told_.erase(trial);
  unreadable_[trial] = std::string(status.message());
  return true;
}

std::string StudyRuntime::unreadable() const {
  absl::MutexLock lock(&mutex_);
  return DescribeUnreadable(unreadable_);
}

TrialNumber StudyRuntime::next_number() const {
  absl::MutexLock lock(&mutex_);
  return TrialNumber{next_number_};
}

sampler::History StudyRuntime::history() const {
  absl::MutexLock lock(&mutex_);
  return history_;
}

void StudyRuntime::DecideLocked() const {
  if (!std::exchange(undecided_, false)) return;
  const bool known = !verdict_.target_reached.empty();
  verdict_ = JudgeHistory(history_, spec_, failures_from_);
  if (!verdict_.target_reached.empty() && !known) {
    spdlog::info("study {}: {}", name_, verdict_.target_reached);
  }
}

StudyStanding StudyRuntime::standing() const {
  absl::MutexLock lock(&mutex_);
  DecideLocked();
  return StandingOf(spec_, verdict_,
                    {.order = order_,
                     .failures_from = failures_from_,
                     .num_budgeted = num_budgeted_,
                     .open = open.load(),
                     .regret_bounded = sampler.regret_bounded().value_or("")});
}

std::optional<sampler::PruneDecision> StudyRuntime::DecidePruning(TrialNumber trial) {
  absl::MutexLock lock(&mutex_);
  const auto decide =
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> std::optional<sampler::PruneDecision> {
    // Demonstrations are no part of the history.
    if (!history_.trials().contains(trial)) return std::nullopt;
    return pruner_->Decide(history_, trial);
  };
  return open.DecideStop(trial, decide);
}

}  // namespace hpo::server
