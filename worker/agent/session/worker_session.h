// The worker's registration with the server, shared by the agent loop and the lease keeper, each of
// which may find that the server has forgotten it. Thread-safe.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo::agent {

class WorkerSession {
 public:
  // `predecessor`: CoordinatorClient::RegisterWorker.
  explicit WorkerSession(WorkerFacts facts, std::string predecessor = "")
      : predecessor_(std::move(predecessor)), facts_(std::move(facts)) {}

  // What the next registration tells.
  void SetFacts(WorkerFacts facts);
  WorkerFacts facts() const;

  // The newest registration; its session is empty before the first.
  Registration current() const;

  // Registers, through the caller's own connection. Codes: CoordinatorClient::RegisterWorker.
  absl::Status Register(CoordinatorClient& client);

  // Registers again, unless another thread has done so since `stale` was the session.
  absl::Status Renew(const std::string& stale, CoordinatorClient& client);

 private:
  absl::Status RegisterLocked(CoordinatorClient& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(registering_);

  const std::string predecessor_;
  // Held during the call, so that two threads do not register at once.
  absl::Mutex registering_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  WorkerFacts facts_ ABSL_GUARDED_BY(mutex_);
  Registration registration_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::agent
