#include "server/trials/open_trials.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/trials/lease_token.h"

namespace hpo::server {

void OpenTrials::Publish(const TrialChange& change, absl::Duration now, absl::Duration renewed_at) {
  absl::MutexLock lock(&mutex_);
  AccountLocked(now);
  const Trial& trial = change.record.trial;
  if (trial.state == TrialState::kQueued) {
    queue_[trial.id.number] =
        QueuedTrial{.trial = trial, .last_oom = change.record.last_oom, .since = now};
  } else {
    queue_.erase(trial.id.number);
  }
  PublishLease(change, now, renewed_at);
}

void OpenTrials::PublishLease(const TrialChange& change, absl::Duration now,
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
    said_.erase(number);
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
                              .heard_at = now,
                              .suspect = holder.attempt.state == AttemptState::kSuspect,
                              .stop = {},
                              .preempted = holder.preempted,
                              .cancelled = holder.stop_order.has_value(),
                              .since = now,
                              .started = holder.attempt.started};
}

absl::Duration OpenTrials::TimeHeldLocked(TrialNumber trial, absl::Duration now) const {
  const auto before = held_before_.find(trial);
  const auto lease = leases_.find(trial);
  return (before == held_before_.end() ? absl::ZeroDuration() : before->second) +
         (lease == leases_.end() ? absl::ZeroDuration() : now - lease->second.since);
}

void OpenTrials::Forget(TrialNumber trial) {
  absl::MutexLock lock(&mutex_);
  queue_.erase(trial);
  leases_.erase(trial);
  said_.erase(trial);
}

OpenTrials::Load OpenTrials::load() const {
  absl::MutexLock lock(&mutex_);
  return Load{.num_queued = queue_.size(), .num_held = leases_.size(), .wall_clock = wall_clock_};
}

std::vector<QueuedTrial> OpenTrials::queue() const {
  absl::MutexLock lock(&mutex_);
  std::vector<QueuedTrial> queued;
  for (const auto& [number, trial] : queue_) queued.push_back(trial);
  return queued;
}

std::vector<HeldLease> OpenTrials::leases() const {
  absl::MutexLock lock(&mutex_);
  std::vector<HeldLease> held;
  for (const auto& [number, lease] : leases_) held.push_back(lease);
  return held;
}

std::optional<HeldLease> OpenTrials::FindLease(TrialNumber trial) const {
  absl::MutexLock lock(&mutex_);
  const auto found = leases_.find(trial);
  if (found == leases_.end()) return std::nullopt;
  return found->second;
}

OpenTrials::Renewal OpenTrials::Renew(const LeaseRef& lease, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  const auto found = leases_.find(lease.trial.number);
  if (found == leases_.end() || found->second.attempt != lease.attempt ||
      found->second.token_hash != HashOfToken(lease.token)) {
    return Renewal::kLost;
  }
  // A lease that a restart renewed ahead of time is not cut short by its first beat.
  found->second.renewed_at = std::max(found->second.renewed_at, now);
  found->second.heard_at = now;
  return std::exchange(found->second.suspect, false) ? Renewal::kReadopted : Renewal::kRenewed;
}

void OpenTrials::Note(const LeaseBeat& beat) {
  absl::MutexLock lock(&mutex_);
  const TrialNumber trial = beat.lease.trial.number;
  const auto held = leases_.find(trial);
  if (held == leases_.end() || held->second.attempt != beat.lease.attempt) return;
  Said& said = said_[trial];
  said.beat = beat;
  if (!beat.log_tail.empty()) said.log_tail = std::exchange(said.beat.log_tail, "");
}

std::optional<LeaseBeat> OpenTrials::LastBeat(TrialNumber trial, AttemptNumber attempt) const {
  absl::MutexLock lock(&mutex_);
  const auto found = said_.find(trial);
  if (found == said_.end() || found->second.beat.lease.attempt != attempt) return std::nullopt;
  return found->second.beat;
}

std::string OpenTrials::LastLogTail(TrialNumber trial, AttemptNumber attempt) const {
  absl::MutexLock lock(&mutex_);
  const auto found = said_.find(trial);
  const bool is_known = found != said_.end() && found->second.beat.lease.attempt == attempt;
  return is_known ? found->second.log_tail : "";
}

void OpenTrials::MarkSuspect(TrialNumber trial, AttemptNumber attempt) {
  absl::MutexLock lock(&mutex_);
  const auto found = leases_.find(trial);
  if (found != leases_.end() && found->second.attempt == attempt) found->second.suspect = true;
}

std::optional<sampler::PruneDecision> OpenTrials::DecideStop(
    TrialNumber trial, absl::FunctionRef<std::optional<sampler::PruneDecision>()> decide) {
  absl::MutexLock lock(&mutex_);
  const auto found = leases_.find(trial);
  if (found == leases_.end()) return std::nullopt;
  std::optional<sampler::PruneDecision>& stop = found->second.stop;
  if (!stop) stop = decide();
  return stop;
}

void OpenTrials::StopOverdue(absl::Duration limit, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  for (auto& [number, lease] : leases_) {
    if (lease.stop || TimeHeldLocked(number, now) < limit) continue;
    lease.stop = sampler::PruneDecision{
        .pruner = kTimeLimitPruner,
        .why = absl::StrCat("the trial has used its ", absl::FormatDuration(limit))};
  }
}

void OpenTrials::Account(absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  AccountLocked(now);
}

void OpenTrials::AccountLocked(absl::Duration now) {
  if (!leases_.empty()) wall_clock_ += now - accounted_at_;
  accounted_at_ = now;
}

absl::Duration OpenTrials::wall_clock_to_store() const {
  absl::MutexLock lock(&mutex_);
  return wall_clock_ - wall_clock_stored_;
}

void OpenTrials::WallClockStored(absl::Duration used) {
  absl::MutexLock lock(&mutex_);
  wall_clock_stored_ += used;
}

std::map<TrialNumber, absl::Duration> OpenTrials::times_held(absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  std::map<TrialNumber, absl::Duration> times;
  for (const auto& [number, before] : held_before_) times[number] = TimeHeldLocked(number, now);
  return times;
}

}  // namespace hpo::server
