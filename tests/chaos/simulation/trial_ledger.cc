#include "tests/chaos/simulation/trial_ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo {
namespace {

bool IsTerminal(TrialState state) {
  return state != TrialState::kQueued && state != TrialState::kRunning;
}

std::string NameOf(const TrialId& trial, AttemptNumber attempt) {
  return absl::StrCat("trial ", trial.study, " #", trial.number.value, " attempt ", attempt.value);
}

template <typename... Words>
absl::Status Broken(const TrialId& trial, AttemptNumber attempt, const Words&... words) {
  return absl::InternalError(absl::StrCat(NameOf(trial, attempt), ": ", words...));
}

}  // namespace

absl::StatusOr<std::vector<server::TrialRecord>> LoadRows(const server::TrialStore& trials) {
  HPO_ASSIGN_OR_RETURN(const std::vector<server::TrialStore::LastEvent> events,
                       trials.LastEvents());
  std::vector<server::TrialRecord> rows;
  for (const server::TrialStore::LastEvent& event : events) {
    HPO_ASSIGN_OR_RETURN(rows.emplace_back(), trials.LoadTrialWithAttempts(event.trial));
  }
  std::sort(rows.begin(), rows.end(),
            [](const server::TrialRecord& a, const server::TrialRecord& b) {
              return a.trial.id.number < b.trial.id.number;
            });
  return rows;
}

bool TrialLedger::IsAlive(const Holder& holder, absl::Duration now) const {
  return server::HealthOf(holder.renewed_at, now, options_.lease) != server::LeaseHealth::kExpired;
}

absl::Status TrialLedger::Assigned(const LeaseRef& lease, const WorkerFacts& holder,
                                   absl::Duration now) {
  Entry& entry = trials_[lease.trial];
  if (entry.end) {
    return Broken(lease.trial, lease.attempt, "handed out after its end as ", Name(*entry.end));
  }
  if (entry.holder && entry.holder->token == lease.token) return absl::OkStatus();
  if (entry.holder && IsAlive(*entry.holder, now)) {
    return Broken(lease.trial, lease.attempt, "handed to ", holder.worker, " while ",
                  entry.holder->worker, " holds attempt ", entry.holder->attempt.value);
  }
  if (lease.attempt <= entry.newest) {
    return Broken(lease.trial, lease.attempt, "handed out again, after attempt ",
                  entry.newest.value);
  }
  entry.newest = lease.attempt;
  entry.holder = Holder{.attempt = lease.attempt,
                        .token = lease.token,
                        .worker = holder.worker,
                        .instance_key = holder.instance_key,
                        .renewed_at = now};
  return absl::OkStatus();
}

absl::Status TrialLedger::Beat(const LeaseRef& lease, Directive directive, absl::Duration now) {
  Entry& entry = trials_[lease.trial];
  const bool holds = entry.holder && entry.holder->token == lease.token;
  if (directive != Directive::kLeaseLost) {
    if (!holds) return Broken(lease.trial, lease.attempt, "renewed, though its lease was over");
    entry.holder->renewed_at = std::max(entry.holder->renewed_at, now);
    return absl::OkStatus();
  }
  if (!holds) return absl::OkStatus();
  if (IsAlive(*entry.holder, now)) {
    return Broken(lease.trial, lease.attempt, "its lease was lost while ", entry.holder->worker,
                  " kept it alive");
  }
  entry.holder.reset();
  return absl::OkStatus();
}

absl::Status TrialLedger::Finished(const FinishRequest& request, const FinishResult& result) {
  const LeaseRef& lease = request.lease;
  Entry& entry = trials_[lease.trial];
  if (!result.stored) {
    if (entry.end && result.state != *entry.end) {
      return Broken(lease.trial, lease.attempt, "ended as ", Name(*entry.end), ", now said to be ",
                    Name(result.state));
    }
    return absl::OkStatus();
  }
  if (entry.end) return Broken(lease.trial, lease.attempt, "ended a second time");
  ++num_told_;
  const bool holds = entry.holder && entry.holder->attempt == lease.attempt;
  if (IsTerminal(result.state)) {
    entry.end = result.state;
    entry.outcome = request.outcome;
    entry.holder.reset();
  } else if (holds) {
    entry.holder.reset();
  }
  return absl::OkStatus();
}

absl::Status TrialLedger::Released(const LeaseRef& lease, TrialState state) {
  Entry& entry = trials_[lease.trial];
  const bool holds = entry.holder && entry.holder->token == lease.token;
  if (!holds) return Broken(lease.trial, lease.attempt, "released by one that does not hold it");
  entry.holder.reset();
  if (IsTerminal(state)) entry.end = state;
  return absl::OkStatus();
}

void TrialLedger::Registered(const WorkerFacts& facts) {
  for (auto& [trial, entry] : trials_) {
    const bool older = entry.holder && entry.holder->worker == facts.worker &&
                       entry.holder->instance_key != facts.instance_key;
    if (older) entry.holder.reset();
  }
}

void TrialLedger::Restarted(absl::Duration now) {
  for (auto& [trial, entry] : trials_) {
    if (entry.holder) entry.holder->renewed_at = server::RenewedByRestart(now, options_.lease);
  }
}

absl::Status TrialLedger::Audit(const std::string& study,
                                const std::vector<server::TrialRecord>& rows, absl::Duration now) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].trial.id.number.value != static_cast<int64_t>(i)) {
      return absl::InternalError(absl::StrCat("study ", study, ": trial #", i, " is missing"));
    }
    HPO_RETURN_IF_ERROR(AuditRow(rows[i], trials_[rows[i].trial.id], now));
  }
  for (const auto& [id, entry] : trials_) {
    if (id.study == study && id.number.value >= static_cast<int64_t>(rows.size())) {
      return Broken(id, entry.newest, "was handed out and is not stored");
    }
  }
  return absl::OkStatus();
}

absl::Status TrialLedger::AuditRow(const server::TrialRecord& row, Entry& entry,
                                   absl::Duration now) const {
  const Trial& trial = row.trial;
  int64_t expected = 1;
  for (const Attempt& attempt : trial.attempts) {
    if (attempt.number.value != expected++) {
      return Broken(trial.id, attempt.number, "attempts are not numbered from 1 on");
    }
    const bool holds =
        attempt.state == AttemptState::kLeased || attempt.state == AttemptState::kSuspect;
    const bool should =
        trial.state == TrialState::kRunning && attempt.number == row.current_attempt;
    if (holds != should) {
      return Broken(trial.id, attempt.number, Name(attempt.state), " of a trial that is ",
                    Name(trial.state));
    }
  }
  if (!row.IsOpen()) return AuditEnd(row, entry, now);
  if (entry.end) {
    return Broken(trial.id, row.current_attempt, "ended as ", Name(*entry.end), " and is ",
                  Name(trial.state), " again");
  }
  const bool known_holder = entry.holder && entry.holder->attempt == row.current_attempt;
  if (trial.state == TrialState::kRunning) {
    if (known_holder || options_.answers_may_be_lost) return absl::OkStatus();
    return Broken(trial.id, row.current_attempt, "runs, though nobody was given it");
  }
  if (entry.holder && IsAlive(*entry.holder, now)) {
    return Broken(trial.id, entry.holder->attempt, "taken from ", entry.holder->worker,
                  ", which keeps it alive");
  }
  entry.holder.reset();
  return absl::OkStatus();
}

absl::Status TrialLedger::AuditEnd(const server::TrialRecord& row, Entry& entry,
                                   absl::Duration now) const {
  const Trial& trial = row.trial;
  if (!entry.end) {
    if (entry.holder && IsAlive(*entry.holder, now) && !options_.answers_may_be_lost) {
      return Broken(trial.id, entry.holder->attempt, "ended as ", Name(trial.state), " while ",
                    entry.holder->worker, " keeps it alive");
    }
    entry.end = trial.state;
    entry.holder.reset();
    return absl::OkStatus();
  }
  if (*entry.end != trial.state) {
    return Broken(trial.id, row.result_attempt, "ended as ", Name(*entry.end), " and is stored as ",
                  Name(trial.state));
  }
  const Completed* told = entry.outcome ? std::get_if<Completed>(&*entry.outcome) : nullptr;
  const Completed* kept = trial.outcome ? std::get_if<Completed>(&*trial.outcome) : nullptr;
  if (told != nullptr && (kept == nullptr || !(*kept == *told))) {
    return Broken(trial.id, row.result_attempt, "is stored with another result than was told");
  }
  return absl::OkStatus();
}

}  // namespace hpo
