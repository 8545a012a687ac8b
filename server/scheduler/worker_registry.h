// The workers that have registered since the server started, and which of them are alive.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/study.h"
#include "common/worker_facts.h"
#include "server/scheduler/lease.h"

namespace hpo {

struct RegisteredWorker {
  WorkerFacts facts;  // capacity: the latest
  std::string session;
  absl::Duration last_contact;                       // monotonic
  absl::Time last_heartbeat = absl::InfinitePast();  // for display
  bool alive = false;
  std::string notice;
};

// Thread-safe.
class WorkerRegistry {
 public:
  WorkerRegistry(const Clock& clock, LeasePolicy policy) : clock_(clock), policy_(policy) {}

  // Takes the worker in and returns its session. A process that registers again keeps its session;
  // a new process of the same name replaces the older one, whose session is unknown from then on.
  std::string Register(const WorkerFacts& facts);

  // Marks the session's worker as alive, with `capacity` as its latest (nullopt: as it was).
  //   NotFound  unknown session
  absl::StatusOr<RegisteredWorker> Touch(const std::string& session, std::optional<Bytes> capacity);

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
  std::map<std::string, RegisteredWorker> workers_ ABSL_GUARDED_BY(mutex_);  // by name
  std::map<std::string, std::string> name_by_session_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo
