// Ask, report, tell: hands out trials, keeps their leases, takes their results. The only writer of
// trials. Decisions are made by pure functions (lease, retry_policy, capability, placement) and by
// the study's sampler and pruner; here are their side effects.
//
// Thread-safe. No database lock is held while a sampler thinks: a suggestion is made first, then
// one short transaction writes trial, lease and suggestion.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "common/study/imported_trial.h"
#include "common/study/study_status.h"
#include "server/leases/retry_policy.h"
#include "server/orders/study_request.h"
#include "server/placement/live_calibration.h"
#include "server/placement/misfit_advice.h"
#include "server/placement/placement.h"
#include "server/placement/smaller_cards.h"
#include "server/storage/store.h"
#include "server/storage/study_archive.h"
#include "server/studies/study_runtime.h"
#include "server/studies/trial_writer.h"
#include "server/workers/lease.h"
#include "server/workers/worker_registry.h"

namespace hpo {

struct SchedulerOptions {
  LeasePolicy lease;
  // How often a thread calls Tick(); zero: nobody does (tests).
  absl::Duration tick_interval = absl::Seconds(1);
  StudyFactories factories;
  // Called after a commit with each trial that it changed; returns at once. May be empty.
  std::function<void(const TrialId&)> on_trial_changed;
};

class TrialScheduler {
 public:
  // Starts an epoch: rebuilds every study from the database and renews its leases (lease.h). What
  // cannot be read is left out, logged, and named by Status.
  // `clock` outlives the scheduler.
  static absl::StatusOr<std::unique_ptr<TrialScheduler>> Create(std::unique_ptr<Store> store,
                                                                const Clock& clock,
                                                                SchedulerOptions options = {});
  ~TrialScheduler();

  // Hands out nothing more and wakes every waiting call. Leases stay; results are still taken.
  void Drain();
  bool draining() const;

  // Takes back expired leases, settles trials that wait for a card that is gone, stores the wall
  // clock; reads memory again where rows are ahead of it (Store::behind). Called by the ticking
  // thread. Goes on with the other studies after the first error, which it returns.
  absl::Status Tick();

  // ---- Studies ---- (codes: StudyApi)

  // Whether the study was created; false: it was there.
  absl::StatusOr<bool> AddStudy(
      const StudySpec& spec, bool validate_only, const std::string& request_id,
      absl::FunctionRef<bool()> cancelled = [] { return false; });
  absl::Status UpdateStudy(const std::string& name, const StudyUpdate& update,
                           const std::string& request_id);
  absl::StatusOr<EditResult> EditStudy(const std::string& name, const StudyEdit& edit);
  // Passes the study's archive on line by line (study_archive.h); how many trials it holds.
  absl::StatusOr<int64_t> ArchiveStudy(const std::string& name, const ArchiveSink& take) const;
  absl::StatusOr<std::string> RestoreStudy(const std::string& name, const std::string& archive);
  absl::StatusOr<int64_t> DeleteStudy(const std::string& name, const std::string& archive_sha256);
  absl::StatusOr<TrialNumber> EnqueueTrial(const std::string& name, const EnqueueRequest& request,
                                           const std::string& request_id);
  // Of the study itself where no trial is named; what there is then.
  absl::StatusOr<Attributes> ChangeAttributes(const std::string& name,
                                              std::optional<TrialNumber> trial,
                                              const AttributeChange& change);
  absl::StatusOr<RetryResult> RetryTrials(const std::string& name, const RetryRequest& request,
                                          const std::string& request_id);
  absl::StatusOr<ImportResult> ImportTrials(const TrialImport& import);
  absl::Status Preempt(const std::string& study, TrialNumber number);
  absl::Status StopTrial(const std::string& study, TrialNumber number, const std::string& reason);
  absl::Status CancelTrial(const std::string& study, TrialNumber number, const std::string& reason);
  absl::Status OrderStudy(const std::string& name, StudyOrder order, bool stop_running_trials);

  // Of all studies, also of those whose row cannot be read.
  std::vector<std::string> StudyNames() const;
  absl::StatusOr<StudyStatus> Status(const std::string& name) const;
  //   NotFound  no such study; an empty name is the only one
  //   DataLoss  its row cannot be read
  absl::StatusOr<StudyRuntime*> FindStudy(const std::string& name) const;
  // Runs `read` over one committed state of the study's trials.
  absl::Status ReadTrials(const StudyRuntime& study,
                          const std::function<absl::Status(const TrialStore&)>& read) const;

  // ---- Workers ---- (codes: WorkerApi)

  absl::StatusOr<Registration> Register(const WorkerFacts& facts,
                                        const std::string& predecessor = "");
  absl::StatusOr<AcquireResult> Acquire(const std::string& session, const std::string& request_id,
                                        absl::Duration wait, Bytes capacity,
                                        const std::function<bool()>& cancelled);
  absl::StatusOr<HeartbeatResult> Heartbeat(const std::string& session,
                                            const std::vector<LeaseBeat>& beats, Bytes capacity,
                                            const std::string& notice = "", bool leaving = false);
  absl::StatusOr<ReportResult> Report(const AttemptReport& report);
  absl::StatusOr<FinishResult> Finish(const std::string& request_id, const FinishRequest& request);
  absl::StatusOr<TrialState> Release(const std::string& request_id, const LeaseRef& lease,
                                     ReleaseReason reason, Bytes needed, const std::string& note);

  const Store& store() const { return *store_; }
  const WorkerRegistry& workers() const { return workers_; }
  // What trials have taught about memory by now, as decisions of `study` for `worker` go by it.
  MemoryKnowledge Knowledge(const StudyRuntime& study, const WorkerFacts& worker) const {
    return KnowledgeFor(study.spec(), worker, study.history(), calibration_.Snapshot(), replays_);
  }
  CalibrationSnapshot calibration() const { return calibration_.Snapshot(); }
  const std::shared_ptr<ReplayTable>& replays() const { return replays_; }
  int64_t epoch() const { return epoch_; }
  // Identifies the database (StudyStore::DatabaseId).
  const std::string& database() const { return database_; }

 private:
  TrialScheduler(std::unique_ptr<Store> store, const Clock& clock, SchedulerOptions options);

  // restore.cc
  absl::Status Load();
  absl::Status CatchUp();
  static absl::StatusOr<CalibrationSnapshot> LoadCalibration(Database& database);
  // Makes memory equal to the rows. Studies that were there before are retired.
  absl::Status LoadRows(Database& database);
  absl::StatusOr<std::unique_ptr<StudyRuntime>> LoadStudy(Database& database, StudyRecord record);
  // Whether `status` says that rows of `trial` cannot be read; then it is logged and left alone.
  bool Quarantined(StudyRuntime& study, TrialNumber trial, const absl::Status& status);

  // trial_scheduler.cc
  void TickLoop();
  void WakeAll();
  std::vector<StudyRuntime*> Studies() const;
  int64_t studies_version() const;

  // studies.cc
  absl::Status StoreSpec(StudyRuntime& study, const StudySpec& spec);
  // What a study becomes by its file; the file's budget and choices count where the file changed.
  absl::StatusOr<StudySpec> MergeStated(const StudyRuntime& known, const StudySpec& spec) const;
  absl::StatusOr<bool> AddOrMerge(const StudySpec& spec, const std::string& request_id,
                                  const std::string& body, absl::FunctionRef<bool()> cancelled);
  // What a study of `spec` takes from those that it names, and the trials themselves.
  //   NotFound            no such study; lists those there are
  //   FailedPrecondition, Cancelled  ChoosePrior
  absl::StatusOr<std::vector<StudyPrior>> ChoosePriors(const StudySpec& spec,
                                                       absl::FunctionRef<bool()> cancelled) const;
  absl::StatusOr<std::vector<PriorStudy>> CollectPriors(
      const StudySpec& spec, const std::vector<StudyPrior>& chosen) const;
  std::vector<WorkerStatus> WorkersOf(const StudyRuntime& study) const;
  // Why those of `workers` that are idle get nothing; why nothing runs, or the study ended.
  std::string WaitingFor(const StudyRuntime& study, const std::vector<WorkerStatus>& workers) const;
  // Of one that is finished.
  static FinishedStudy EndOf(const StudyRuntime& study);

  // edit_study.cc
  // Cancels what waits outside and has never run.
  absl::Status CancelOutside(Database& database, const StudyRuntime& study,
                             const SearchSpace& space, EditResult& result) const;
  // The study as its rows are in the transaction; what it starts from is `priors`.
  absl::StatusOr<std::unique_ptr<StudyRuntime>> ReadAnew(Database& database, int64_t study_id,
                                                         std::vector<PriorStudy> priors);
  // `fresh` takes the place of `study`; without it the study is gone.
  void Replace(StudyRuntime& study, std::unique_ptr<StudyRuntime> fresh, int64_t version);

  // archive.cc
  absl::Status CheckMayGo(Database& database, const StudyRuntime& study,
                          const std::string& archive_sha256) const;

  // enqueue.cc
  //   FailedPrecondition  it hands out nothing that is queued now; says what helps
  static absl::Status CheckTakesTrials(const StudyRuntime& study);
  // `request.params` are complete.
  static absl::Status Queue(TrialTransaction& transaction, const StudyRuntime& study,
                            TrialNumber number, const EnqueueRequest& request);
  absl::StatusOr<ParamMap> CompleteEnqueued(const StudyRuntime& study, const ParamMap& given,
                                            TrialNumber number) const;

  // retry_trials.cc
  absl::Status QueueAgain(TrialTransaction& transaction, const StudyRuntime& study,
                          const RetryRequest& request, RetryResult& result) const;

  // import.cc
  absl::StatusOr<std::vector<ImportedTrial>> CheckImported(const StudySpec& spec,
                                                           const TrialImport& import) const;

  // register.cc
  absl::Status ReleaseOlderInstance(const WorkerFacts& facts, NameGrant how);

  // ask.cc
  struct Asker {
    WorkerFacts facts;
    std::string request_id;
  };
  absl::Status ReleaseUnlessThere(const std::string& session, const LeaseRef& lease);
  absl::StatusOr<std::optional<Assignment>> Replay(const Asker& asker);
  absl::StatusOr<std::optional<Assignment>> TryAcquire(const Asker& asker,
                                                       std::string& waiting_for);
  struct Waiting {
    Trial trial;
    Placement placement;
  };
  absl::StatusOr<std::optional<Assignment>> TakeQueued(StudyRuntime& study, const Asker& asker,
                                                       std::string& waiting_for);
  // Of `queue`, what the worker is to run next (smaller_cards.h); nullopt where it can run nothing.
  // Sets the worker's obstacle then, and ends what fits nowhere.
  absl::StatusOr<std::optional<Waiting>> ChooseWaiting(StudyRuntime& study,
                                                       const std::vector<QueuedTrial>& queue,
                                                       const SmallerCards& smaller,
                                                       const WorkerFacts& facts,
                                                       const MemoryKnowledge& knowledge);
  // nullopt: the worker cannot run it; `obstacle` says why, or it was ended as it fits nowhere.
  absl::StatusOr<std::optional<Placement>> PlaceWaiting(StudyRuntime& study, const Trial& trial,
                                                        const WorkerFacts& facts,
                                                        const MemoryKnowledge& knowledge,
                                                        std::string& obstacle);
  SmallerCards SmallerThan(const StudyRuntime& study, const StudySpec& spec,
                           const WorkerFacts& facts) const;
  absl::StatusOr<std::optional<Assignment>> Propose(StudyRuntime& study, const Asker& asker,
                                                    std::string& waiting_for);
  // The attempt that holds the trial from this transaction on.
  absl::StatusOr<AttemptRecord> Start(TrialTransaction& transaction, const StudyRuntime& study,
                                      const Asker& asker, TrialRecord& record,
                                      const Placement& placement);
  absl::Status EndAsPredicted(StudyRuntime& study, const Trial& trial, const Placement& placement);
  void Started(StudyRuntime& study, const StudySpec& spec, const WorkerFacts& facts);
  AcquireResult EmptyAnswer(const WorkerFacts& facts) const;
  Assignment Complete(Assignment assignment) const;

  // report.cc
  // Gives back what the worker, which has left, was granted and does not hold: the answer never
  // reached it.
  absl::Status ReleaseNeverTaken(const WorkerFacts& left, const std::vector<LeaseBeat>& still_held);
  absl::StatusOr<Directive> Beat(const LeaseRef& lease);
  absl::Status SetAttemptState(StudyRuntime& study, TrialNumber trial, AttemptNumber attempt,
                               AttemptState from, AttemptState to);

  // tell.cc
  struct Ending {
    AttemptState attempt_state;
    Verdict verdict;
  };
  std::optional<Bytes> LargestUsable(const StudySpec& spec, const Trial& trial) const;
  absl::StatusOr<std::optional<ResidualRecord>> JudgeEstimate(const StudyRuntime& study,
                                                              const FinishRequest& request) const;
  absl::Status FinishIn(TrialTransaction& transaction, StudyRuntime& study,
                        const FinishRequest& request, const std::optional<ResidualRecord>& residual,
                        FinishResult& result);
  absl::Status RecordResult(TrialTransaction& transaction, const StudySpec& spec,
                            const FinishRequest& request, const Verdict& verdict,
                            TrialRecord& record, AttemptRecord& attempt);
  absl::Status EndAttempt(TrialTransaction& transaction, const StudySpec& spec,
                          const Ending& ending, TrialRecord& record, AttemptRecord& attempt);
  enum class LeaseLoss { kSilent, kRestarted, kNameTaken, kNeverTaken };
  absl::Status LoseLease(StudyRuntime& study, const HeldLease& lease, LeaseLoss why);
  // The same; ok, too, where the trial's rows cannot be read and it is left alone from now on.
  absl::Status EndLease(StudyRuntime& study, const HeldLease& lease, LeaseLoss why);

  // expiry.cc
  absl::Status TickStudy(StudyRuntime& study);
  absl::Status ExpireLease(StudyRuntime& study, const HeldLease& lease);
  absl::Status SettleQueued(StudyRuntime& study, const StudySpec& spec, const QueuedTrial& queued);
  absl::Status StoreWallClock(StudyRuntime& study);

  // forget.cc: request ids and changes beyond common/base/limits.h, every ten minutes. Only the
  // ticking thread calls it.
  absl::Status ForgetOld();

  const std::unique_ptr<Store> store_;
  const Clock& clock_;
  const SchedulerOptions options_;
  WorkerRegistry workers_;
  LiveCalibration calibration_;
  MisfitAdvisor advisor_;
  const std::shared_ptr<ReplayTable> replays_ = std::make_shared<ReplayTable>();
  TrialWriter writer_;
  int64_t epoch_ = 0;
  std::string database_;
  std::string token_secret_;  // lease_token.h
  absl::Duration forgot_at_;  // monotonic; of the ticking thread

  // Held over a change of any study's spec and its commit.
  absl::Mutex spec_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  // Retired studies are kept: pointers to them stay valid.
  std::vector<std::unique_ptr<StudyRuntime>> studies_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<StudyRuntime>> retired_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> unreadable_ ABSL_GUARDED_BY(mutex_);  // studies, and why
  int64_t studies_version_ ABSL_GUARDED_BY(mutex_) = 0;
  // Grows with everything that may give a waiting worker something to do.
  int64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread ticker_;
};

}  // namespace hpo
