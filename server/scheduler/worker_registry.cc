#include "server/scheduler/worker_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ids.h"
#include "server/scheduler/capability.h"

namespace hpo {

std::string WorkerRegistry::Register(const WorkerFacts& facts) {
  absl::MutexLock lock(&mutex_);
  RegisteredWorker& worker = workers_[facts.worker];
  if (worker.session.empty() || worker.facts.instance_key != facts.instance_key) {
    name_by_session_.erase(worker.session);
    worker.session = RandomId();
    name_by_session_[worker.session] = facts.worker;
  }
  worker.facts = facts;
  worker.last_contact = clock_.Monotonic();
  worker.last_heartbeat = clock_.Now();
  return worker.session;
}

absl::StatusOr<RegisteredWorker> WorkerRegistry::Touch(const std::string& session,
                                                       std::optional<Bytes> capacity) {
  absl::MutexLock lock(&mutex_);
  const auto found = name_by_session_.find(session);
  if (found == name_by_session_.end()) {
    return absl::NotFoundError(
        absl::StrCat("session ", session, ": expected one of a registered worker; register again"));
  }
  RegisteredWorker& worker = workers_[found->second];
  if (capacity) worker.facts.capacity = *capacity;
  worker.last_contact = clock_.Monotonic();
  worker.last_heartbeat = clock_.Now();
  worker.alive = true;
  return worker;
}

void WorkerRegistry::SetNotice(const std::string& session, const std::string& notice) {
  absl::MutexLock lock(&mutex_);
  const auto found = name_by_session_.find(session);
  if (found != name_by_session_.end()) workers_[found->second].notice = notice;
}

bool WorkerRegistry::IsAlive(const RegisteredWorker& worker) const {
  return HealthOf(worker.last_contact, clock_.Monotonic(), policy_) != LeaseHealth::kExpired;
}

std::vector<RegisteredWorker> WorkerRegistry::List() const {
  absl::MutexLock lock(&mutex_);
  std::vector<RegisteredWorker> workers;
  for (const auto& [name, worker] : workers_) {
    workers.push_back(worker);
    workers.back().alive = IsAlive(worker);
  }
  return workers;
}

std::optional<RegisteredWorker> WorkerRegistry::Find(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(name);
  if (found == workers_.end()) return std::nullopt;
  RegisteredWorker worker = found->second;
  worker.alive = IsAlive(worker);
  return worker;
}

std::vector<WorkerFacts> WorkerRegistry::Alive() const {
  std::vector<WorkerFacts> alive;
  for (RegisteredWorker& worker : List()) {
    if (worker.alive) alive.push_back(std::move(worker.facts));
  }
  return alive;
}

std::optional<Bytes> WorkerRegistry::LargestUsable(const StudySpec& study,
                                                   const ParamMap& params) const {
  std::vector<WorkerFacts> workers = Alive();
  for (WorkerFacts& worker : workers) worker.capacity = CapacityAlone(worker);
  return hpo::LargestUsable(workers, study, params);
}

}  // namespace hpo
