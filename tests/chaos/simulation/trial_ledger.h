// What workers were told, kept apart from the server's code: an independent record of who holds
// which trial and how trials ended, against which every further answer is checked.
//
// A call that was answered with an error tells the ledger nothing. Every check returns Internal
// with the rule that was broken, or OK.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/worker_exchange.h"
#include "server/storage/records.h"
#include "server/storage/trial_store.h"
#include "server/workers/lease.h"

namespace hpo {

struct LedgerOptions {
  server::LeasePolicy lease;
  // Whether a call that did its work may have been answered with an error.
  bool answers_may_be_lost = false;
};

// Every trial of a study with its attempts, by number.
absl::StatusOr<std::vector<server::TrialRecord>> LoadRows(const server::TrialStore& trials);

// Times are readings of Clock::Monotonic(). Not thread-safe.
class TrialLedger {
 public:
  explicit TrialLedger(LedgerOptions options) : options_(options) {}

  // A trial was handed out, or the same lease once more. Nobody else may hold the trial, and it
  // may not be over.
  absl::Status Assigned(const LeaseRef& lease, const WorkerFacts& holder, absl::Duration now);
  // A lease that its holder keeps alive may not be called lost.
  absl::Status Beat(const LeaseRef& lease, Directive directive, absl::Duration now);
  // A trial ends once.
  absl::Status Finished(const FinishRequest& request, const FinishResult& result);
  absl::Status Released(const LeaseRef& lease, TrialState state);
  // A new process of a worker's name ends the leases of the older one.
  void Registered(const WorkerFacts& facts);
  // Renews every lease as the server does. After an Audit, by which the ledger knows of leases that
  // the server took back.
  void Restarted(absl::Duration now);

  // Holds the rows of a study, by number, against the record: none missing, none held by somebody
  // else, none with another end than was told.
  absl::Status Audit(const std::string& study, const std::vector<server::TrialRecord>& rows,
                     absl::Duration now);

  int64_t num_told() const { return num_told_; }

 private:
  struct Holder {
    AttemptNumber attempt;
    std::string token;
    std::string worker;
    std::string instance_key;
    absl::Duration renewed_at;
  };
  struct Entry {
    AttemptNumber newest = server::kNoAttempt;
    std::optional<Holder> holder;
    std::optional<TrialState> end;
    std::optional<TrialOutcome> outcome;  // as told; nullopt: the server's own decision
  };

  bool IsAlive(const Holder& holder, absl::Duration now) const;
  absl::Status AuditRow(const server::TrialRecord& row, Entry& entry, absl::Duration now) const;
  absl::Status AuditEnd(const server::TrialRecord& row, Entry& entry, absl::Duration now) const;

  const LedgerOptions options_;
  std::map<TrialId, Entry> trials_;
  int64_t num_told_ = 0;
};

}  // namespace hpo
