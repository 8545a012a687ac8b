// What the server holds in memory of one study: queue, leases, history, sampler. Everything here
// can be rebuilt from the database; Publish is called after a commit only, in the order of the
// commits.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/protocol/worker_exchange.h"
#include "common/study/study.h"
#include "sampler/failures.h"
#include "sampler/history.h"
#include "sampler/pruner.h"
#include "sampler/sampler.h"
#include "server/storage/records.h"

namespace hpo {

// How samplers and pruners come to be; tests put fakes here.
struct StudyFactories {
  std::function<std::unique_ptr<Sampler>(const StudySpec&, std::vector<PriorStudy>)> make_sampler =
      MakeSampler;
  std::function<std::unique_ptr<Pruner>(const StudySpec&)> make_pruner = MakePruner;
};

// A trial as one event left it.
struct TrialChange {
  int64_t sequence = 0;
  std::string kind;    // see TrialEvent
  TrialRecord record;  // with attempts
  std::vector<Measurement> measurements;
  std::optional<AttemptRecord> lease;  // the current attempt, while it holds one
};

// What people want of a study from the event `sequence` on.
struct OrderedStudy {
  StudyOrder order = StudyOrder::kRun;
  TrialNumber failures_from;  // as StudyRecord's
  int64_t sequence = 0;
};

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
  bool suspect = false;
  std::optional<PruneDecision> stop;
  bool preempted = false;  // the worker shall give it back
  bool cancelled = false;  // the worker shall end it
  absl::Duration since;    // monotonic; of a lease that a restart found, of the restart
};

// Thread-safe.
class StudyRuntime {
 public:
  StudyRuntime(StudyRecord record, const StudyFactories& factories);

  int64_t id() const { return id_; }
  const std::string& name() const { return name_; }

  StudySpec spec() const;
  absl::Time created() const { return created_; }
  // Takes a changed budget and added choices.
  void SetSpec(const StudySpec& spec);
  // Takes any other spec of the same name, and starts from `priors`, of which `chosen` tells. Only
  // before anything was suggested.
  void ReplaceSpec(const StudySpec& spec, const std::vector<StudyPrior>& chosen,
                   std::vector<PriorStudy> priors);
  std::vector<StudyPrior> priors() const;
  std::map<std::string, std::string> data_digests() const;
  void PinData(const std::string& file, const std::string& digest);

  // Another runtime has taken this one's place: nothing is written by it any more.
  void Retire() { retired_.store(true); }
  // It has not come to that.
  void Unretire() { retired_.store(false); }
  bool retired() const { return retired_.load(); }
  //   Unavailable  retired
  absl::Status CheckNotRetired() const;

  // ---- Trials ----

  // `renewed_at` is the lease's start where the change brings a new lease.
  void Publish(const TrialChange& change, absl::Duration now, absl::Duration renewed_at);
  // Whether `status` says that rows of the trial cannot be read. It is then logged and left alone:
  // neither queued nor leased.
  bool QuarantineIfUnreadable(TrialNumber trial, const absl::Status& status);
  // "trial #7: column params: ...; trial #9: ...", the first few; empty: all can be read.
  std::string unreadable() const;
  TrialNumber next_number() const;
  std::vector<QueuedTrial> queue() const;  // by number
  bool has_trials() const { return next_number().value > 0; }
  int64_t last_sequence() const;
  // Blocks until there is an event after `sequence` or `timeout` is over; whether there is one.
  bool WaitForEvent(int64_t sequence, absl::Duration timeout) const;

  // ---- Budget ----

  // Whether one more trial may be proposed.
  bool BudgetLeft() const;
  // Whether queued trials may be handed out.
  bool HandsOut() const;
  // Nothing runs, and nothing more will: budget used and nothing queued; or stopped, failed, its
  // target reached or its wall clock used up, which leave what is queued where it is.
  bool Finished() const;
  // Why no more trials are proposed although trials and time are left (sampler/termination.h);
  // empty: they are.
  std::string termination() const;
  // Which trial has reached budget.target, and how to go on; empty: none has, or there is no
  // target.
  std::string target_reached() const;
  StudyOrder order() const;
  TrialNumber failures_from() const;
  void TakeOrder(const OrderedStudy& ordered);
  // Why failures have ended it (sampler/failures.h); nullopt: they have not.
  std::optional<TooManyFailures> failure() const;
  // Time with at least one lease. Account brings it up to `now`.
  void Account(absl::Duration now);
  absl::Duration wall_clock_used() const;
  // What has not been stored yet; Stored() takes it off.
  absl::Duration wall_clock_to_store() const;
  void WallClockStored(absl::Duration used);
  // How long workers have held each open trial, by the monotonic clock. A restart takes up what was
  // stored: the time from then until it is there again counts for no trial.
  std::map<TrialNumber, absl::Duration> times_held(absl::Duration now) const;

  // ---- Leases ----

  enum class Renewal { kRenewed, kReadopted, kLost };
  // Renews the lease that `lease` proves. kReadopted: it was suspect.
  Renewal Renew(const LeaseRef& lease, absl::Duration now);
  std::optional<HeldLease> FindLease(TrialNumber trial) const;
  std::vector<HeldLease> leases() const;
  void MarkSuspect(TrialNumber trial, AttemptNumber attempt);

  // ---- Decisions ----

  // Single flight: whoever proposes or enqueues a trial holds this over suggestion and commit, so
  // that the next suggestion sees this trial.
  absl::Mutex& propose_mutex() const ABSL_LOCK_RETURNED(propose_mutex_) { return propose_mutex_; }
  // Folds what was published into the sampler and asks it, in a context made from the same history.
  //   FailedPrecondition  also where the regret bound says that nothing better is left
  //                       (WhyRegretBounded); the study then ends
  absl::StatusOr<Suggestion> Suggest(const std::function<AskContext(const History&)>& make_context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(propose_mutex_);
  // The pruner's word on a running trial. A stop is final and remembered with the lease.
  std::optional<PruneDecision> DecidePruning(TrialNumber trial);

  // Stops, as a pruner does, each running trial that has used up the study's trial_wall_clock by
  // `now`, a monotonic time; the stop's pruner is kTimeLimitPruner.
  void StopOverdue(absl::Duration now);

  // Why the worker's last ask got nothing of this study, where something could help; empty after
  // one that got a trial.
  std::string obstacle(const std::string& worker) const;
  void set_obstacle(const std::string& worker, const std::string& text);

  History history() const;

 private:
  void PublishLease(const TrialChange& change, absl::Duration now, absl::Duration renewed_at)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of an open trial.
  absl::Duration TimeHeldLocked(TrialNumber trial, absl::Duration now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AccountLocked(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WallClockLeftLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HandsOutLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TrialsLeftLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether and why the study ends, when it is asked for: it goes over all trials, and an import or
  // a restart publishes thousands before anybody asks.
  void DecideLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t id_;
  const std::string name_;
  const absl::Time created_;
  const StudyFactories factories_;
  std::atomic<bool> retired_ = false;

  mutable absl::Mutex propose_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::unique_ptr<Sampler> sampler_ ABSL_GUARDED_BY(propose_mutex_);
  // history_ as far as the sampler has seen it. A second one, because a copy at each suggestion
  // takes longer the more trials there are.
  History observed_ ABSL_GUARDED_BY(propose_mutex_);

  mutable absl::Mutex mutex_;
  StudySpec spec_ ABSL_GUARDED_BY(mutex_);
  std::vector<StudyPrior> priors_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> data_digests_ ABSL_GUARDED_BY(mutex_);
  int64_t next_number_ ABSL_GUARDED_BY(mutex_);
  int64_t num_budgeted_ ABSL_GUARDED_BY(mutex_);
  int64_t last_sequence_ ABSL_GUARDED_BY(mutex_);
  std::map<TrialNumber, QueuedTrial> queue_ ABSL_GUARDED_BY(mutex_);
  std::map<TrialNumber, HeldLease> leases_ ABSL_GUARDED_BY(mutex_);
  // Of open trials: how long leases that are over, or came before a restart, had held them.
  std::map<TrialNumber, absl::Duration> held_before_ ABSL_GUARDED_BY(mutex_);
  std::map<TrialNumber, std::string> unreadable_ ABSL_GUARDED_BY(mutex_);
  History history_ ABSL_GUARDED_BY(mutex_);
  std::deque<HistoryEvent> unobserved_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Pruner> pruner_ ABSL_GUARDED_BY(mutex_);
  absl::Duration wall_clock_ ABSL_GUARDED_BY(mutex_);
  absl::Duration wall_clock_stored_ ABSL_GUARDED_BY(mutex_);
  absl::Duration accounted_at_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> obstacles_ ABSL_GUARDED_BY(mutex_);
  // Final, as what Suggest has said of it, until the study is changed.
  std::optional<std::string> regret_bounded_ ABSL_GUARDED_BY(mutex_);
  mutable std::optional<std::string> termination_ ABSL_GUARDED_BY(mutex_);
  mutable std::optional<std::string> target_reached_ ABSL_GUARDED_BY(mutex_);
  mutable std::optional<TooManyFailures> failure_ ABSL_GUARDED_BY(mutex_);
  StudyOrder order_ ABSL_GUARDED_BY(mutex_);
  TrialNumber failures_from_ ABSL_GUARDED_BY(mutex_);
  mutable bool undecided_ ABSL_GUARDED_BY(mutex_) = true;  // of the three
};

}  // namespace hpo
