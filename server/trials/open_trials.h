// A study's trials that are queued or held by workers, and how long these hold them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/protocol/worker_exchange.h"
#include "common/study/trial.h"
#include "sampler/api/pruner.h"
#include "server/trials/trial_change.h"

namespace hpo::server {

struct QueuedTrial {
  Trial trial;
  std::optional<TrialOutcome> last_oom;
  absl::Duration since;  // monotonic
};

struct HeldLease {
  TrialNumber trial;
  AttemptNumber attempt;
  std::string token_hash;
  std::string worker;
  std::string instance_key;
  absl::Duration renewed_at;  // monotonic
  // Of the last sign of life, monotonic; of a lease that a restart found, of the restart.
  absl::Duration heard_at;
  bool suspect = false;
  std::optional<sampler::PruneDecision> stop;
  bool preempted = false;  // the worker shall give it back
  bool cancelled = false;  // the worker shall end it
  absl::Duration since;    // monotonic; of a lease that a restart found, of the restart
  absl::Time started = absl::InfinitePast();  // of the attempt
};

// Thread-safe. Times are readings of Clock::Monotonic().
class OpenTrials {
 public:
  // `wall_clock`: what was used and stored before.
  explicit OpenTrials(absl::Duration wall_clock)
      : wall_clock_(wall_clock), wall_clock_stored_(wall_clock) {}

  // After a commit (StudyRuntime::Publish). `renewed_at` is the lease's start where the change
  // brings a new lease.
  void Publish(const TrialChange& change, absl::Duration now, absl::Duration renewed_at);
  // The trial is neither queued nor held any more.
  void Forget(TrialNumber trial);

  struct Load {
    size_t num_queued = 0;
    size_t num_held = 0;
    absl::Duration wall_clock;
  };
  // All of one moment.
  Load load() const;
  std::vector<QueuedTrial> queue() const;  // by number
  std::vector<HeldLease> leases() const;   // by number
  std::optional<HeldLease> FindLease(TrialNumber trial) const;

  enum class Renewal { kRenewed, kReadopted, kLost };
  // Renews the lease that `lease` proves. kReadopted: it was suspect.
  Renewal Renew(const LeaseRef& lease, absl::Duration now);
  void MarkSuspect(TrialNumber trial, AttemptNumber attempt);
  // Remembers what the holder of a lease says of its trial; of another attempt it is ignored.
  void Note(const LeaseBeat& beat);
  // What was last said of an attempt that holds its lease, without its log; nullopt: nothing since
  // the server started.
  std::optional<LeaseBeat> LastBeat(TrialNumber trial, AttemptNumber attempt) const;
  std::string LastLogTail(TrialNumber trial, AttemptNumber attempt) const;

  // Whether a running trial is to stop, as `decide` says where that is not known yet. A stop is
  // final and remembered with the lease.
  std::optional<sampler::PruneDecision> DecideStop(
      TrialNumber trial, absl::FunctionRef<std::optional<sampler::PruneDecision>()> decide);
  // Stops, as a pruner does, each running trial that has used up `limit` by `now`; the stop's
  // pruner is kTimeLimitPruner.
  void StopOverdue(absl::Duration limit, absl::Duration now);

  // The wall clock is the time with at least one lease. Account brings it up to `now`.
  void Account(absl::Duration now);
  // What has not been stored yet; WallClockStored() takes it off.
  absl::Duration wall_clock_to_store() const;
  void WallClockStored(absl::Duration used);
  // How long workers have held each open trial. A restart takes up what was stored: the time from
  // then until it is there again counts for no trial.
  std::map<TrialNumber, absl::Duration> times_held(absl::Duration now) const;

 private:
  void PublishLease(const TrialChange& change, absl::Duration now, absl::Duration renewed_at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration TimeHeldLocked(TrialNumber trial, absl::Duration now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AccountLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<TrialNumber, QueuedTrial> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<TrialNumber, HeldLease> leases_ ABSL_GUARDED_BY(mutex_);
  // Of leases_: apart, as those are copied often.
  struct Said {
    LeaseBeat beat;
    std::string log_tail;
  };
  std::map<TrialNumber, Said> said_ ABSL_GUARDED_BY(mutex_);
  // How long leases that are over, or came before a restart, had held them.
  std::map<TrialNumber, absl::Duration> held_before_ ABSL_GUARDED_BY(mutex_);
  absl::Duration wall_clock_ ABSL_GUARDED_BY(mutex_);
  absl::Duration wall_clock_stored_ ABSL_GUARDED_BY(mutex_);
  absl::Duration accounted_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo::server
