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
#include "common/protocol/process_identity.h"
#include "common/protocol/worker_facts.h"
#include "common/study/study.h"
#include "server/workers/lease.h"
#include "server/workers/worker_names.h"

namespace hpo::server {

// Why a worker that asked for a trial got none.
struct IdleCause {
  std::string why;  // empty: it got one, has not asked, or waits for `study`
  // Whose whole budget is handed out: the worker takes what comes back.
  std::string study;
};

struct RegisteredWorker {
  WorkerFacts facts;  // capacity: the latest
  std::string session;
  // When the stream that it held open ended; nullopt: it has not, or there was none.
  std::optional<absl::Duration> cut_off_at;
  absl::Duration last_contact;                       // monotonic
  absl::Time last_heartbeat = absl::InfinitePast();  // for display
  bool alive = false;
  std::string notice;       // what the worker says
  int64_t num_refused = 0;  // registrations of other processes of its name
  std::string note;         // of those, or of the one that it took the name from
  IdleCause idle;           // of its last ask for a trial

  // What people should know of it; empty: nothing.
  std::string Notice() const;
};

// A process that is lost, or may be.
struct LostWorker {
  NamedProcess process;
  // It has ended: known of the machine that it is of. Else its connection has closed, and what it
  // held is lost where nothing was heard of that for AttendanceGrace.
  bool has_ended = false;
};

// Thread-safe.
class WorkerRegistry {
 public:
  WorkerRegistry(const Clock& clock, LeasePolicy policy)
      : clock_(clock), policy_(policy), names_(2 * HeartbeatInterval(policy)) {}

  // Whether `process` may register under its name; it holds the name from then on.
  // Tells the log of a refusal. Codes: WorkerNames::Claim.
  absl::StatusOr<NameGrant> ClaimName(const NamedProcess& process);
  // A lease of the database: its process still has its name. `identity`: WorkerFacts::process.
  void RestoreName(const NamedProcess& process, const ProcessIdentity& identity);

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

  // The session's worker holds a stream open, or does no longer; that of an unknown session is
  // ignored.
  //   NotFound  unknown session
  absl::Status Attend(const std::string& session);
  void StopAttending(const std::string& session);
  // Processes that have ended, and those that have been silent for AttendanceGrace since their
  // stream was closed.
  std::vector<LostWorker> Lost() const;
  // The process has ended: its name is free, its session unknown.
  void Bury(const NamedProcess& process);

  // What people should know of the session's worker; an unknown session is ignored.
  void SetNotice(const std::string& session, const std::string& notice);

  // Of the session's worker; an unknown session is ignored.
  void SetIdle(const std::string& session, IdleCause cause);

  // By name.
  std::vector<RegisteredWorker> List() const;
  std::optional<RegisteredWorker> Find(const std::string& name) const;
  std::vector<WorkerFacts> Alive() const;

  // The most bytes that a live worker which can run `params` may use, once others have left its
  // device; nullopt when there is none.
  std::optional<Bytes> LargestUsable(const StudySpec& study, const ParamMap& params) const;

 private:
  bool IsAlive(const RegisteredWorker& worker) const;
  bool IsCutOff(const RegisteredWorker& worker) const;
  void LeaveLocked(const std::string& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const LeasePolicy policy_;
  const ProcessIdentity own_ = OwnProcess();
  mutable absl::Mutex mutex_;
  WorkerNames names_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, RegisteredWorker> workers_ ABSL_GUARDED_BY(mutex_);  // by name
  std::map<std::string, std::string> name_by_session_ ABSL_GUARDED_BY(mutex_);
  // Of the holders of names, by instance key, those that are seen from here.
  struct SeenProcess {
    std::string name;
    ProcessIdentity identity;
  };
  using SeenProcesses = std::map<std::string, SeenProcess>;
  SeenProcesses seen_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
