// Tested by tests/server/leases/lost_worker_test.cc.
#include "server/workers/worker_registry.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "server/placement/capability.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

NamedProcess ProcessOf(const WorkerFacts& facts) {
  return {.name = facts.worker, .instance_key = facts.instance_key};
}

}  // namespace

std::string RegisteredWorker::Notice() const {
  return absl::StrCat(notice, notice.empty() || note.empty() ? "" : "; ", note);
}

absl::StatusOr<NameGrant> WorkerRegistry::ClaimName(const NamedProcess& process) {
  absl::MutexLock lock(&mutex_);
  const absl::StatusOr<NameGrant> grant = names_.Claim(process, clock_.Monotonic());
  if (!absl::IsAlreadyExists(grant.status())) return grant;
  RegisteredWorker& worker = workers_[process.name];
  worker.note = absl::StrCat("other processes of this name were refused, ", ++worker.num_refused,
                             " so far: give each its own --name");
  spdlog::warn("{}", std::string(grant.status().message()));
  return grant;
}

void WorkerRegistry::RestoreName(const NamedProcess& process, const ProcessIdentity& identity) {
  absl::MutexLock lock(&mutex_);
  names_.Restore(process);
  seen_[process.instance_key] = {.name = process.name, .identity = identity};
}

std::string WorkerRegistry::Register(const WorkerFacts& facts, NameGrant how) {
  absl::MutexLock lock(&mutex_);
  RegisteredWorker& worker = workers_[facts.worker];
  if (worker.session.empty() || worker.facts.instance_key != facts.instance_key) {
    name_by_session_.erase(worker.session);
    seen_.erase(worker.facts.instance_key);
    worker = RegisteredWorker{.session = RandomId()};
    name_by_session_[worker.session] = facts.worker;
    if (how == NameGrant::kTakenOver) {
      worker.note = "took its name from a process that had fallen silent";
      spdlog::warn("worker {} {}", facts.worker, worker.note);
    }
  }
  worker.facts = facts;
  // Who speaks lives: what says otherwise is the number of a process of a copy of this machine.
  const bool seen = !HasEnded(facts.process, own_);
  seen_[facts.instance_key] = {.name = facts.worker,
                               .identity = seen ? facts.process : ProcessIdentity{}};
  worker.last_contact = clock_.Monotonic();
  worker.last_heartbeat = clock_.Now();
  return worker.session;
}

void WorkerRegistry::Leave(const std::string& session) {
  absl::MutexLock lock(&mutex_);
  LeaveLocked(session);
}

void WorkerRegistry::LeaveLocked(const std::string& session) {
  const auto found = name_by_session_.find(session);
  if (found == name_by_session_.end()) return;
  RegisteredWorker& worker = workers_[found->second];
  names_.Free(ProcessOf(worker.facts));
  seen_.erase(worker.facts.instance_key);
  worker.session.clear();
  worker.cut_off_at.reset();
  worker.last_contact = -absl::InfiniteDuration();
  name_by_session_.erase(found);
}

absl::Status WorkerRegistry::Attend(const std::string& session) {
  HPO_RETURN_IF_ERROR(Beat(session, std::nullopt).status());
  absl::MutexLock lock(&mutex_);
  const auto found = name_by_session_.find(session);
  if (found != name_by_session_.end()) workers_[found->second].cut_off_at.reset();
  return absl::OkStatus();
}

void WorkerRegistry::StopAttending(const std::string& session) {
  absl::MutexLock lock(&mutex_);
  const auto found = name_by_session_.find(session);
  if (found != name_by_session_.end()) workers_[found->second].cut_off_at = clock_.Monotonic();
}

bool WorkerRegistry::IsCutOff(const RegisteredWorker& worker) const {
  if (!worker.cut_off_at) return false;
  const absl::Duration heard = std::max(*worker.cut_off_at, worker.last_contact);
  return clock_.Monotonic() - heard > AttendanceGrace(policy_);
}

std::vector<LostWorker> WorkerRegistry::Lost() const {
  std::vector<LostWorker> lost;
  SeenProcesses seen;
  {
    absl::MutexLock lock(&mutex_);
    seen = seen_;
    for (const auto& [name, worker] : workers_) {
      if (IsCutOff(worker)) lost.push_back({.process = ProcessOf(worker.facts)});
    }
  }
  for (const auto& [instance_key, process] : seen) {
    if (!HasEnded(process.identity, own_)) continue;
    lost.push_back(
        {.process = {.name = process.name, .instance_key = instance_key}, .has_ended = true});
  }
  return lost;
}

void WorkerRegistry::Bury(const NamedProcess& process) {
  absl::MutexLock lock(&mutex_);
  names_.Free(process);
  seen_.erase(process.instance_key);
  const auto found = workers_.find(process.name);
  if (found == workers_.end() || found->second.facts.instance_key != process.instance_key) return;
  LeaveLocked(std::string(found->second.session));
}

absl::StatusOr<RegisteredWorker> WorkerRegistry::Beat(const std::string& session,
                                                      std::optional<Bytes> capacity) {
  HPO_ASSIGN_OR_RETURN(RegisteredWorker worker, Touch(session, capacity));
  absl::MutexLock lock(&mutex_);
  names_.Beat(ProcessOf(worker.facts), clock_.Monotonic());
  return worker;
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

void WorkerRegistry::SetIdle(const std::string& session, IdleCause cause) {
  absl::MutexLock lock(&mutex_);
  const auto found = name_by_session_.find(session);
  if (found != name_by_session_.end()) workers_[found->second].idle = std::move(cause);
}

bool WorkerRegistry::IsAlive(const RegisteredWorker& worker) const {
  return !IsCutOff(worker) &&
         HealthOf(worker.last_contact, clock_.Monotonic(), policy_) != LeaseHealth::kExpired;
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
  return hpo::server::LargestUsable(workers, study, params);
}

}  // namespace hpo::server
