#include "server/access/session_owners.h"

#include "absl/strings/str_cat.h"

namespace hpo::server {
namespace {

absl::Status OfAnother(const Caller& caller, const std::string& worker) {
  return absl::PermissionDeniedError(
      absl::StrCat("worker ", worker, " has registered by another token than '", caller.name,
                   "'; to use this one, restart the worker with it"));
}

}  // namespace

bool SessionOwners::IsOfAnother(const Caller& caller, const Owned& owned) {
  return caller.token != 0 && owned.token != caller.name;
}

absl::Status SessionOwners::CheckRegister(const Caller& caller, RegisteringProcess& process) const {
  absl::MutexLock lock(&mutex_);
  const auto found = by_worker_.find(process.worker);
  if (found == by_worker_.end() || !IsOfAnother(caller, found->second)) return absl::OkStatus();
  if (found->second.instance_key == process.instance_key) return OfAnother(caller, process.worker);
  if (found->second.instance_key == process.predecessor) process.predecessor.clear();
  return absl::OkStatus();
}

void SessionOwners::Register(const Caller& caller, const RegisteringProcess& process,
                             const std::string& session) {
  absl::MutexLock lock(&mutex_);
  Owned& owned = by_worker_[process.worker];
  worker_of_.erase(owned.session);
  worker_of_[session] = process.worker;
  owned = {.token = caller.token == 0 ? "" : caller.name,
           .instance_key = process.instance_key,
           .session = session};
}

absl::Status SessionOwners::Check(const Caller& caller, const std::string& session) const {
  absl::MutexLock lock(&mutex_);
  const auto worker = worker_of_.find(session);
  if (worker == worker_of_.end()) return absl::OkStatus();
  if (!IsOfAnother(caller, by_worker_.at(worker->second))) return absl::OkStatus();
  return OfAnother(caller, worker->second);
}

}  // namespace hpo::server
