#include "worker/agent/session/worker_session.h"

#include <utility>

#include "common/base/status.h"

namespace hpo::agent {

void WorkerSession::SetFacts(WorkerFacts facts) {
  absl::MutexLock lock(&mutex_);
  facts_ = std::move(facts);
}

WorkerFacts WorkerSession::facts() const {
  absl::MutexLock lock(&mutex_);
  return facts_;
}

Registration WorkerSession::current() const {
  absl::MutexLock lock(&mutex_);
  return registration_;
}

absl::Status WorkerSession::Register(CoordinatorClient& client) {
  absl::MutexLock lock(&registering_);
  return RegisterLocked(client);
}

absl::Status WorkerSession::Renew(const std::string& stale, CoordinatorClient& client) {
  absl::MutexLock lock(&registering_);
  if (current().session != stale) return absl::OkStatus();
  return RegisterLocked(client);
}

absl::Status WorkerSession::RegisterLocked(CoordinatorClient& client) {
  HPO_ASSIGN_OR_RETURN(Registration registration, client.RegisterWorker(facts(), predecessor_));
  absl::MutexLock lock(&mutex_);
  registration_ = std::move(registration);
  return absl::OkStatus();
}

}  // namespace hpo::agent
