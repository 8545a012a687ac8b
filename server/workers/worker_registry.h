// The workers that have registered since the server started, which of them are alive, and which
// process each name belongs to.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "server/workers/lease.h"
#include "server/workers/worker_names.h"

namespace hpo {

struct RegisteredWorker {
  WorkerFacts facts;  // capacity: the latest
  std::string session;
  absl::Duration last_contact;                       // monotonic
  absl::Time last_heartbeat = absl::InfinitePast();  // for display
  bool alive = false;
  std::string notice;       // what the worker says
  int64_t num_refused = 0;  // registrations of other processes of its name
  std::string note;         // of those, or of the one that it took the name from

  // What people should know of it; empty: nothing.
  std::string Notice() const;
};

// Thread-safe.
class WorkerRegistry {
 public:
  WorkerRegistry(const Clock& clock, LeasePolicy policy)
      : clock_(clock), policy_(policy), names_(2 * HeartbeatInterval(policy)) {}

  // Whether `process` may register under its name; it holds the name from then on.
  // Tells the log of a refusal. Codes: WorkerNames::Claim.
  absl::StatusOr<NameGrant> ClaimName(const NamedProcess& process);
  // A lease of the database: its process still has its name.
  void RestoreName(const NamedProcess& process);

  // Takes a worker in that was granted its name, and returns its session. A process that registers
  // again keeps its session; that of an older process of the name is unknown from then on.
  std::string Register(const WorkerFacts& facts, NameGrant how);

  // Marks the session's worker as alive, with `capacity` as its latest (nullopt: as it was).
  //   NotFound  unknown session
  absl::StatusOr<RegisteredWorker> Touch(const std::string& session, std::optional<Bytes> capacity);
  // The same, by a call of the worker itself: its process keeps its name.
  absl::StatusOr<RegisteredWorker> Beat(const std::string& session, std::optional<Bytes> capacity);
  // The session's worker has ended: its name is free, its session unknown.
  void Leave(const std::string& session);

  // What people should know of the session's worker; an unknown session is ignored.
  void SetNotice(const std::string& session, const std::string& notice);

  // By name.
  std::vector<RegisteredWorker> List() const;
  std::optional<RegisteredWorker> Find(const std::string& name) const;
  std::vector<WorkerFacts> Alive() const;

  // The most bytes that a live worker which can run `params` may use, once others have left its
  // device; nullopt when there is none.
  std::optional<Bytes> LargestUsable(const StudySpec& study, const ParamMap& params) const;

 private:
  bool IsAlive(const RegisteredWorker& worker) const;

  const Clock& clock_;
  const LeasePolicy policy_;
  mutable absl::Mutex mutex_;
  WorkerNames names_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, RegisteredWorker> workers_ ABSL_GUARDED_BY(mutex_);  // by name
  std::map<std::string, std::string> name_by_session_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo
