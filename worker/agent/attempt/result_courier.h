// Brings results and returned trials to the server. A result stays in the outbox until the server
// has it, or its own database says that another attempt's counts (rpc_reaction.h). One that the
// server refuses holds nothing up: it is sent again later, and set aside when it cannot be
// delivered. One thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "worker/agent/attempt/outbox.h"
#include "worker/agent/process/backoff.h"
#include "worker/agent/session/coordinator_client.h"
#include "worker/agent/session/lease_keeper.h"
#include "worker/agent/session/worker_session.h"

namespace hpo::agent {

struct CourierOptions {
  // Between two tries of a result that the server refuses.
  absl::Duration first_retry = absl::Milliseconds(500);
  absl::Duration longest_retry = absl::Minutes(1);
  // How long it is tried; then it is set aside.
  absl::Duration patience = absl::Hours(24);
};

class ResultCourier {
 public:
  // Called once for each result: with what the server has said to it, or why it is not delivered.
  using Told =
      std::function<void(const LeaseRef& lease, const absl::StatusOr<FinishResult>& answer)>;

  // All outlive the courier. Names in the log what former processes have set aside.
  ResultCourier(CoordinatorClient& client, WorkerSession& session, LeaseKeeper& keeper,
                Outbox& outbox, CourierOptions options, Told told);

  // Durable when it returns, or told in the log and kept in memory; DeliverAll tells the server.
  void Accept(const FinishRequest& result);

  // Tells the server every result that it does not have and that is due, oldest first; the lease of
  // each one that is settled is dropped.
  //   a status  the server is away; try later
  absl::Status DeliverAll();

  // Whether there is a result that the server may still take.
  bool owes() const { return !outbox_.pending().empty(); }

  // Gives a trial back: a few tries, then its lease is left to expire. The lease is dropped.
  //   a status  the server was away each time
  absl::Status GiveBack(const TrialRelease& release);

 private:
  // A result that the server has refused.
  struct Deferred {
    absl::Duration since;
    absl::Duration due = {};
    Backoff pauses;
    std::string why = {};
  };

  absl::StatusOr<FinishResult> Tell(const OutboxEntry& entry);
  // Measurements that do not fit into one message with the result go first.
  absl::StatusOr<FinishResult> TellInParts(const std::string& session, const OutboxEntry& entry);
  absl::Status TakeAnswer(const OutboxEntry& entry, const absl::StatusOr<FinishResult>& answer);
  void Settle(const OutboxEntry& entry, const absl::StatusOr<FinishResult>& answer);
  Deferred& DeferralOf(const OutboxEntry& entry);
  void Defer(const OutboxEntry& entry, const absl::Status& status);
  void SetAside(const OutboxEntry& entry, const absl::Status& status);
  void Forget(const OutboxEntry& entry, const absl::StatusOr<FinishResult>& answer);
  void Saved(const absl::Status& status);
  // Puts what people should know of the results into the heartbeats.
  void Notify();

  CoordinatorClient& client_;
  WorkerSession& session_;
  LeaseKeeper& keeper_;
  Outbox& outbox_;
  const CourierOptions options_;
  const Told told_;
  const SystemClock clock_;
  std::map<std::string, Deferred> deferred_;  // by request id
  std::map<std::string, size_t> num_told_;    // measurements told in parts, by request id
  std::string unsaved_why_;                   // empty: everything is on disk
};

}  // namespace hpo::agent
