#include "server/studies/study_runtime.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/steady_wait.h"
#include "sampler/gp/regret_bound.h"
#include "sampler/termination.h"
#include "server/studies/lease_token.h"
#include "server/studies/typed_params.h"
#include "spdlog/spdlog.h"

namespace hpo {
namespace {

constexpr size_t kUnreadableShown = 5;

History WithinOf(const History& history, const SearchSpace& space) {
  const auto within = [&space](const auto& trial) { return IsWithin(space, trial.second.params); };
  if (std::all_of(history.trials().begin(), history.trials().end(), within)) return history;
  History part;
  for (const auto& [number, trial] : history.trials()) {
    if (IsWithin(space, trial.params)) part.Apply({.sequence = history.sequence(), .trial = trial});
  }
  return part;
}

}  // namespace

StudyRuntime::StudyRuntime(StudyRecord record, const StudyFactories& factories)
    : id_(record.id),
      name_(record.spec.name),
      created_(record.created),
      factories_(factories),
      sampler_(factories.make_sampler(record.spec, {})),
      spec_(record.spec),
      priors_(record.priors),
      data_digests_(std::move(record.data_digests)),
      next_number_(record.next_number),
      num_budgeted_(record.num_budgeted),
      last_sequence_(record.last_sequence),
      pruner_(factories.make_pruner(record.spec)),
      wall_clock_(record.wall_clock),
      wall_clock_stored_(record.wall_clock),
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
  regret_bounded_.reset();
  undecided_ = true;
}

void StudyRuntime::ReplaceSpec(const StudySpec& spec, const std::vector<StudyPrior>& chosen,
                               std::vector<PriorStudy> priors) {
  absl::MutexLock propose_lock(&propose_mutex_);
  absl::MutexLock lock(&mutex_);
  sampler_ = factories_.make_sampler(spec, std::move(priors));
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

void StudyRuntime::Publish(const TrialChange& change, absl::Duration now,
                           absl::Duration renewed_at) {
  absl::MutexLock lock(&mutex_);
  AccountLocked(now);
  const Trial& trial = change.record.trial;
  last_sequence_ = std::max(last_sequence_, change.sequence);
  if (trial.id.number.value >= next_number_) {
    next_number_ = trial.id.number.value + 1;
    if (!trial.demonstration && trial.budgeted) ++num_budgeted_;
  }
  if (trial.state == TrialState::kQueued) {
    queue_[trial.id.number] =
        QueuedTrial{.trial = trial, .last_oom = change.record.last_oom, .since = now};
  } else {
    queue_.erase(trial.id.number);
  }
  PublishLease(change, now, renewed_at);
  unreadable_.erase(trial.id.number);
  if (trial.demonstration) return;
  HistoryEvent event{
      .sequence = change.sequence,
      .trial = ToHistory(trial, change.measurements, spec_.objectives, spec_.constraints)};
  history_.Apply(event);
  // What the sampler's space no longer has teaches it nothing.
  if (IsWithin(spec_.space, trial.params)) unobserved_.push_back(std::move(event));
  undecided_ = undecided_ || trial.outcome.has_value();
}

void StudyRuntime::PublishLease(const TrialChange& change, absl::Duration now,
                                absl::Duration renewed_at) {
  const TrialNumber number = change.record.trial.id.number;
  held_before_.try_emplace(number, change.record.held);
  const auto known = leases_.find(number);
  const bool goes_on = known != leases_.end() && change.lease &&
                       known->second.attempt == change.lease->attempt.number;
  if (goes_on) {
    known->second.preempted = change.lease->preempted;
    known->second.cancelled = change.lease->stop_order.has_value();
    return;
  }
  if (known != leases_.end()) {
    held_before_[number] = TimeHeldLocked(number, now);
    leases_.erase(known);
  }
  if (change.record.trial.outcome) held_before_.erase(number);
  if (!change.lease) return;
  const AttemptRecord& holder = *change.lease;
  leases_[number] = HeldLease{.trial = number,
                              .attempt = holder.attempt.number,
                              .token_hash = holder.token_hash,
                              .worker = holder.attempt.worker,
                              .instance_key = holder.instance_key,
                              .renewed_at = renewed_at,
                              .suspect = holder.attempt.state == AttemptState::kSuspect,
                              .stop = {},
                              .preempted = holder.preempted,
                              .cancelled = holder.stop_order.has_value(),
                              .since = now};
}

absl::Duration StudyRuntime::TimeHeldLocked(TrialNumber trial, absl::Duration now) const {
  const auto before = held_before_.find(trial);
  const auto lease = leases_.find(trial);
  return (before == held_before_.end() ? absl::ZeroDuration() : before->second) +
         (lease == leases_.end() ? absl::ZeroDuration() : now - lease->second.since);
}

std::map<TrialNumber, absl::Duration> StudyRuntime::times_held(absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  std::map<TrialNumber, absl::Duration> times;
  for (const auto& [number, before] : held_before_) times[number] = TimeHeldLocked(number, now);
  return times;
}

bool StudyRuntime::QuarantineIfUnreadable(TrialNumber trial, const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return false;
  spdlog::error("study {} trial #{} is left alone, as its rows cannot be read: {}", name_,
                trial.value, std::string(status.message()));
  absl::MutexLock lock(&mutex_);
  queue_.erase(trial);
  leases_.erase(trial);
  unreadable_[trial] = std::string(status.message());
  return true;
}

std::string StudyRuntime::unreadable() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> shown;
  for (const auto& [number, why] : unreadable_) {
    if (shown.size() == kUnreadableShown) {
      shown.push_back(absl::StrCat(unreadable_.size() - kUnreadableShown, " more"));
      break;
    }
    shown.push_back(absl::StrCat("trial #", number.value, ": ", why));
  }
  return absl::StrJoin(shown, "; ");
}

TrialNumber StudyRuntime::next_number() const {
  absl::MutexLock lock(&mutex_);
  return TrialNumber{next_number_};
}

std::vector<QueuedTrial> StudyRuntime::queue() const {
  absl::MutexLock lock(&mutex_);
  std::vector<QueuedTrial> queued;
  for (const auto& [number, trial] : queue_) queued.push_back(trial);
  return queued;
}

int64_t StudyRuntime::last_sequence() const {
  absl::MutexLock lock(&mutex_);
  return last_sequence_;
}

bool StudyRuntime::WaitForEvent(int64_t sequence, absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto newer = [this, sequence]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return last_sequence_ > sequence;
  };
  return AwaitSteadily(mutex_, absl::Condition(&newer), timeout);
}

void StudyRuntime::DecideLocked() const {
  if (!std::exchange(undecided_, false)) return;
  termination_ = regret_bounded_.has_value() ? regret_bounded_ : WhyTerminate(history_, spec_);
  failure_ = WhyFailed(history_, spec_.budget, failures_from_);
  const bool known = target_reached_.has_value();
  target_reached_ = WhyTargetReached(history_, spec_);
  if (target_reached_ && !known) spdlog::info("study {}: {}", name_, *target_reached_);
}

std::string StudyRuntime::target_reached() const {
  absl::MutexLock lock(&mutex_);
  DecideLocked();
  return target_reached_.value_or("");
}

StudyOrder StudyRuntime::order() const {
  absl::MutexLock lock(&mutex_);
  return order_;
}

TrialNumber StudyRuntime::failures_from() const {
  absl::MutexLock lock(&mutex_);
  return failures_from_;
}

void StudyRuntime::TakeOrder(const OrderedStudy& ordered) {
  absl::MutexLock lock(&mutex_);
  order_ = ordered.order;
  failures_from_ = ordered.failures_from;
  last_sequence_ = std::max(last_sequence_, ordered.sequence);
  undecided_ = true;
}

std::optional<TooManyFailures> StudyRuntime::failure() const {
  absl::MutexLock lock(&mutex_);
  DecideLocked();
  return failure_;
}

std::string StudyRuntime::termination() const {
  absl::MutexLock lock(&mutex_);
  DecideLocked();
  return target_reached_ ? *target_reached_ : termination_.value_or("");
}

bool StudyRuntime::TrialsLeftLocked() const {
  DecideLocked();
  if (termination_.has_value()) return false;
  return !spec_.budget.trials || num_budgeted_ < *spec_.budget.trials;
}

bool StudyRuntime::WallClockLeftLocked() const {
  return !spec_.budget.wall_clock || wall_clock_ < *spec_.budget.wall_clock;
}

bool StudyRuntime::HandsOutLocked() const {
  DecideLocked();
  return order_ == StudyOrder::kRun && !failure_ && !target_reached_ && WallClockLeftLocked();
}

bool StudyRuntime::BudgetLeft() const {
  absl::MutexLock lock(&mutex_);
  return TrialsLeftLocked() && HandsOutLocked();
}

bool StudyRuntime::HandsOut() const {
  absl::MutexLock lock(&mutex_);
  return HandsOutLocked();
}

bool StudyRuntime::Finished() const {
  absl::MutexLock lock(&mutex_);
  if (!leases_.empty()) return false;
  DecideLocked();
  const bool ended = order_ == StudyOrder::kStop || failure_ || target_reached_;
  if (ended || !WallClockLeftLocked()) return true;
  return !TrialsLeftLocked() && queue_.empty();
}

void StudyRuntime::Account(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  AccountLocked(now);
}

void StudyRuntime::AccountLocked(absl::Duration now) {
  if (!leases_.empty()) wall_clock_ += now - accounted_at_;
  accounted_at_ = now;
}

absl::Duration StudyRuntime::wall_clock_used() const {
  absl::MutexLock lock(&mutex_);
  return wall_clock_;
}

absl::Duration StudyRuntime::wall_clock_to_store() const {
  absl::MutexLock lock(&mutex_);
  return wall_clock_ - wall_clock_stored_;
}

void StudyRuntime::WallClockStored(absl::Duration used) {
  absl::MutexLock lock(&mutex_);
  wall_clock_stored_ += used;
}

StudyRuntime::Renewal StudyRuntime::Renew(const LeaseRef& lease, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  const auto found = leases_.find(lease.trial.number);
  if (found == leases_.end() || found->second.attempt != lease.attempt ||
      found->second.token_hash != HashOfToken(lease.token)) {
    return Renewal::kLost;
  }
  // A lease that a restart renewed ahead of time is not cut short by its first beat.
  found->second.renewed_at = std::max(found->second.renewed_at, now);
  return std::exchange(found->second.suspect, false) ? Renewal::kReadopted : Renewal::kRenewed;
}

std::optional<HeldLease> StudyRuntime::FindLease(TrialNumber trial) const {
  absl::MutexLock lock(&mutex_);
  const auto found = leases_.find(trial);
  if (found == leases_.end()) return std::nullopt;
  return found->second;
}

std::vector<HeldLease> StudyRuntime::leases() const {
  absl::MutexLock lock(&mutex_);
  std::vector<HeldLease> held;
  for (const auto& [number, lease] : leases_) held.push_back(lease);
  return held;
}

void StudyRuntime::MarkSuspect(TrialNumber trial, AttemptNumber attempt) {
  absl::MutexLock lock(&mutex_);
  const auto found = leases_.find(trial);
  if (found != leases_.end() && found->second.attempt == attempt) found->second.suspect = true;
}

absl::Status StudyRuntime::CheckNotRetired() const {
  if (!retired()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("study ", name(), " was read again from the database; try again"));
}

absl::StatusOr<Suggestion> StudyRuntime::Suggest(
    const std::function<AskContext(const History&)>& make_context) {
  std::deque<HistoryEvent> events;
  std::optional<StudySpec> bounded;
  {
    absl::MutexLock lock(&mutex_);
    events.swap(unobserved_);
    if (spec_.budget.regret_bound.has_value()) bounded = spec_;
  }
  for (const HistoryEvent& event : events) {
    sampler_->Observe(event);
    observed_.Apply(event);
  }
  // Here and not with the other reasons to end: it takes a fit, which no lock may wait for.
  std::optional<std::string> why;
  if (bounded.has_value()) why = WhyRegretBounded(WithinOf(observed_, bounded->space), *bounded);
  if (why.has_value()) {
    absl::MutexLock lock(&mutex_);
    regret_bounded_ = why;
    undecided_ = true;
    return absl::FailedPreconditionError(*std::move(why));
  }
  return sampler_->Suggest(make_context(observed_));
}

std::optional<PruneDecision> StudyRuntime::DecidePruning(TrialNumber trial) {
  absl::MutexLock lock(&mutex_);
  const auto found = leases_.find(trial);
  if (found == leases_.end()) return std::nullopt;
  std::optional<PruneDecision>& stop = found->second.stop;
  // Demonstrations are no part of the history.
  if (!stop && history_.trials().contains(trial)) stop = pruner_->Decide(history_, trial);
  return stop;
}

void StudyRuntime::StopOverdue(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  const std::optional<absl::Duration> limit = spec_.budget.trial_wall_clock;
  if (!limit) return;
  for (auto& [number, lease] : leases_) {
    if (lease.stop || TimeHeldLocked(number, now) < *limit) continue;
    lease.stop =
        PruneDecision{.pruner = kTimeLimitPruner,
                      .why = absl::StrCat("the trial has used its ", absl::FormatDuration(*limit))};
  }
}

std::string StudyRuntime::obstacle(const std::string& worker) const {
  absl::MutexLock lock(&mutex_);
  const auto found = obstacles_.find(worker);
  return found == obstacles_.end() ? "" : found->second;
}

void StudyRuntime::set_obstacle(const std::string& worker, const std::string& text) {
  absl::MutexLock lock(&mutex_);
  if (text.empty()) {
    obstacles_.erase(worker);
  } else {
    obstacles_[worker] = text;
  }
}

History StudyRuntime::history() const {
  absl::MutexLock lock(&mutex_);
  return history_;
}

}  // namespace hpo
