// Brings results and returned trials to the server. A result stays in the outbox until the server
// has it, or says that it will never take it. One thread.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "worker/agent/coordinator_client.h"
#include "worker/agent/lease_keeper.h"
#include "worker/agent/outbox.h"
#include "worker/agent/worker_session.h"

namespace hpo {

class ResultCourier {
 public:
  // Called with what the server has said to a result, or why it will never take it.
  using Told =
      std::function<void(const LeaseRef& lease, const absl::StatusOr<FinishResult>& answer)>;

  // All outlive the courier.
  ResultCourier(CoordinatorClient& client, WorkerSession& session, LeaseKeeper& keeper,
                Outbox& outbox, Told told)
      : client_(client),
        session_(session),
        keeper_(keeper),
        outbox_(outbox),
        told_(std::move(told)) {}

  // Durable when it returns; DeliverAll tells the server.
  //   Internal  see Outbox::Append
  absl::Status Accept(const FinishRequest& result);

  // Tells the server every result that it does not have, oldest first; each one's lease is dropped.
  //   a status  the server is away or could not store one; try later
  absl::Status DeliverAll();

  // Gives a trial back: a few tries, then its lease is left to expire. The lease is dropped.
  //   a status  the server was away each time
  absl::Status GiveBack(const TrialRelease& release);

 private:
  absl::StatusOr<FinishResult> Tell(const OutboxEntry& entry);

  CoordinatorClient& client_;
  WorkerSession& session_;
  LeaseKeeper& keeper_;
  Outbox& outbox_;
  Told told_;
};

}  // namespace hpo
