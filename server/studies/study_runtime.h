// What the server holds in memory of one study. Everything here can be rebuilt from the database;
// Publish is called after a commit only, in the order of the commits.
#pragma once

#include <atomic>
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
#include "common/study/study.h"
#include "sampler/api/history.h"
#include "sampler/api/pruner.h"
#include "sampler/api/sampler.h"
#include "sampler/factory/make_pruner.h"
#include "sampler/factory/make_sampler.h"
#include "server/storage/records.h"
#include "server/studies/study_sampler.h"
#include "server/studies/study_standing.h"
#include "server/trials/change_feed.h"
#include "server/trials/dry_run_log.h"
#include "server/trials/open_trials.h"
#include "server/trials/trial_change.h"
#include "server/trials/trial_durations.h"
#include "server/trials/worker_obstacles.h"

namespace hpo::server {

// How samplers and pruners come to be; tests put fakes here.
struct StudyFactories {
  std::function<std::unique_ptr<sampler::Sampler>(const StudySpec&,
                                                  std::vector<sampler::PriorStudy>)>
      make_sampler = sampler::MakeSampler;
  std::function<std::unique_ptr<sampler::Pruner>(const StudySpec&)> make_pruner =
      sampler::MakePruner;
};

// Thread-safe, as its parts are.
class StudyRuntime {
 public:
  StudyRuntime(StudyRecord record, const StudyFactories& factories);

  int64_t id() const { return id_; }
  const std::string& name() const { return name_; }
  absl::Time created() const { return created_; }
  // What is kept of a study goes by both: a new study may have the id of one that was deleted.
  using Identity = std::pair<int64_t, absl::Time>;
  Identity identity() const { return {id_, created_}; }

  StudySpec spec() const;
  // Takes a changed budget and added choices.
  void SetSpec(const StudySpec& spec);
  // Takes any other spec of the same name, and starts from `priors`, of which `chosen` tells. Only
  // before anything was suggested.
  void ReplaceSpec(const StudySpec& spec, const std::vector<StudyPrior>& chosen,
                   std::vector<sampler::PriorStudy> priors);
  std::vector<StudyPrior> priors() const;
  std::map<std::string, std::string> data_digests() const;
  void PinData(const std::string& file, const std::string& digest);

  // Another runtime has taken this one's place: nothing is written by it any more.
  void Retire() { retired_.store(true); }
  void Unretire() { retired_.store(false); }  // it has not come to that
  //   Unavailable  retired
  absl::Status CheckNotRetired() const;

  // Takes the change into this and every part. `renewed_at` is the lease's start where the change
  // brings a new lease; both times are monotonic.
  void Publish(const TrialChange& change, absl::Duration now, absl::Duration renewed_at);
  // Whether memory holds all that the attempt had measured so far, so that PublishMeasured may take
  // what it adds.
  bool TakesMeasurementsOf(TrialNumber trial, AttemptNumber attempt) const;
  // The same as Publish of the whole trial, at a cost that does not grow with what it had measured.
  void PublishMeasured(const TrialMeasured& measured);
  void TakeOrder(const OrderedStudy& ordered);
  // Whether `status` says that rows of the trial cannot be read. It is then logged and left alone:
  // neither queued nor leased.
  bool QuarantineIfUnreadable(TrialNumber trial, const absl::Status& status);
  // "trial #7: column params: ...; trial #9: ...", the first few; empty: all can be read.
  std::string unreadable() const;

  TrialNumber next_number() const;
  bool has_trials() const { return next_number().value > 0; }
  sampler::History history() const;
  StudyStanding standing() const;
  // The pruner's word on a running trial. A stop is final and remembered with the lease.
  std::optional<sampler::PruneDecision> DecidePruning(TrialNumber trial);

  OpenTrials open;
  StudySampler sampler;
  WorkerObstacles obstacles;
  DryRunLog dry_runs;
  TrialDurations durations;
  ChangeFeed changes;

 private:
  // Whether and why the study ends, when it is asked for: it goes over all trials, and an import or
  // a restart publishes thousands before anybody asks.
  void DecideLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Logs once that the pruner waits for longer than a trial takes.
  void WarnIfNeverStopped(const sampler::HistoryTrial& trial) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t id_;
  const std::string name_;
  const absl::Time created_;
  const StudyFactories factories_;
  std::atomic<bool> retired_ = false;

  // Taken before those of the parts, but for the sampler's propose_mutex.
  mutable absl::Mutex mutex_;
  StudySpec spec_ ABSL_GUARDED_BY(mutex_);
  std::vector<StudyPrior> priors_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> data_digests_ ABSL_GUARDED_BY(mutex_);
  int64_t next_number_ ABSL_GUARDED_BY(mutex_);
  int64_t num_budgeted_ ABSL_GUARDED_BY(mutex_);
  std::map<TrialNumber, std::string> unreadable_ ABSL_GUARDED_BY(mutex_);
  sampler::History history_ ABSL_GUARDED_BY(mutex_);
  // Of open trials.
  struct Told {
    AttemptNumber attempt;  // whose measurements are in history_
    bool to_sampler = false;
  };
  std::map<TrialNumber, Told> told_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<sampler::Pruner> pruner_ ABSL_GUARDED_BY(mutex_);
  bool warned_of_pruner_ ABSL_GUARDED_BY(mutex_) = false;
  mutable HistoryVerdict verdict_ ABSL_GUARDED_BY(mutex_);
  StudyOrder order_ ABSL_GUARDED_BY(mutex_);
  TrialNumber failures_from_ ABSL_GUARDED_BY(mutex_);
  mutable bool undecided_ ABSL_GUARDED_BY(mutex_) = true;  // verdict_ is old
};

}  // namespace hpo::server
