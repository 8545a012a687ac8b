// A coordinator in memory: hands out the assignments it was given, records every call, and fails as
// told. Thread-safe; one instance serves as both of an agent's connections.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "worker/agent/session/coordinator_client.h"

namespace hpo {

class FakeCoordinator final : public agent::CoordinatorClient {
 public:
  struct Finish {
    std::string session;
    std::string request_id;
    FinishRequest request;
  };

  // ---- Script ----

  void AddAssignment(Assignment assignment) {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(std::move(assignment));
  }

  // Every call fails with Unavailable while set.
  void SetAway(bool away) {
    absl::MutexLock lock(&mutex_);
    away_ = away;
  }

  // As a restarted server: every session is forgotten, leases are still known.
  void ForgetSessions() {
    absl::MutexLock lock(&mutex_);
    session_.clear();
  }

  void SetStudies(std::vector<agent::StudyData> studies) {
    absl::MutexLock lock(&mutex_);
    studies_ = std::move(studies);
    ++studies_version_;
  }

  // The answer to every heartbeat and report of any lease.
  void SetDirective(Directive directive) {
    absl::MutexLock lock(&mutex_);
    directive_ = directive;
  }

  // The same, of this trial's lease.
  void SetDirectiveFor(int64_t trial, Directive directive) {
    absl::MutexLock lock(&mutex_);
    directive_for_[trial] = directive;
  }

  void SetHeartbeatInterval(absl::Duration interval) {
    absl::MutexLock lock(&mutex_);
    heartbeat_interval_ = interval;
  }

  // Reports of measurements at or after `step` are answered with should_stop.
  void StopFromStep(int64_t step) {
    absl::MutexLock lock(&mutex_);
    stop_from_step_ = step;
  }

  // Called, without a lock, at each report, with what it reports.
  void OnReport(std::function<void(const AttemptReport&)> callback) {
    absl::MutexLock lock(&mutex_);
    on_report_ = std::move(callback);
  }

  // What the trial of this number becomes when it is finished; else what its outcome says.
  void SetStateAfterFinish(int64_t trial, TrialState state) {
    absl::MutexLock lock(&mutex_);
    state_after_finish_[trial] = state;
  }

  // Called, without a lock, when a finish arrives, before it is answered; what it returns, where
  // not OK, is the answer, and the finish counts as not stored.
  void OnFinish(std::function<absl::Status(const Finish&)> callback) {
    absl::MutexLock lock(&mutex_);
    on_finish_ = std::move(callback);
  }

  void SetReportStatus(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    report_status_ = std::move(status);
  }

  // The next acquires fail with these, one each; later ones are answered as ever.
  void FailAcquires(std::vector<absl::Status> failures) {
    absl::MutexLock lock(&mutex_);
    acquire_failures_.assign(failures.begin(), failures.end());
  }

  void SetRegisterStatus(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    register_status_ = std::move(status);
  }

  void AddPreflight(Preflight preflight) {
    absl::MutexLock lock(&mutex_);
    preflights_.push_back(std::move(preflight));
  }

  // The next reports of dry runs fail with these, one each.
  void FailPreflightReports(std::vector<absl::Status> failures) {
    absl::MutexLock lock(&mutex_);
    preflight_failures_.assign(failures.begin(), failures.end());
  }

  // All studies are finished once the queue is empty (the default), or never.
  void NeverFinish() {
    absl::MutexLock lock(&mutex_);
    finishes_ = false;
  }

  // Once they are, which there were and why.
  void FinishWith(std::vector<FinishedStudy> finished) {
    absl::MutexLock lock(&mutex_);
    finished_ = std::move(finished);
  }

  // ---- What happened ----

  // Finishes that were stored, by request id; a repeated id is stored once.
  std::map<std::string, Finish> stored() const {
    absl::MutexLock lock(&mutex_);
    return stored_;
  }
  // The same, in the order of arrival.
  std::vector<FinishRequest> results() const {
    absl::MutexLock lock(&mutex_);
    return results_;
  }
  int num_finish_calls() const {
    absl::MutexLock lock(&mutex_);
    return num_finish_calls_;
  }
  std::vector<TrialRelease> releases() const {
    absl::MutexLock lock(&mutex_);
    return releases_;
  }
  std::vector<AttemptReport> reports() const {
    absl::MutexLock lock(&mutex_);
    return reports_;
  }
  std::vector<WorkerFacts> registrations() const {
    absl::MutexLock lock(&mutex_);
    return registrations_;
  }
  std::vector<std::string> predecessors() const {
    absl::MutexLock lock(&mutex_);
    return predecessors_;
  }
  std::vector<std::vector<LeaseBeat>> beats() const {
    absl::MutexLock lock(&mutex_);
    return beats_;
  }
  // How long each ask for a trial would wait.
  std::vector<absl::Duration> waits() const {
    absl::MutexLock lock(&mutex_);
    return waits_;
  }
  // What the newest heartbeat said that people should know.
  std::string notice() const {
    absl::MutexLock lock(&mutex_);
    return notice_;
  }
  std::vector<LeaseBeat> named_in_goodbye() const {
    absl::MutexLock lock(&mutex_);
    return named_in_goodbye_;
  }

  // Reports of dry runs that were taken.
  std::vector<PreflightReport> preflight_reports() const {
    absl::MutexLock lock(&mutex_);
    return preflight_reports_;
  }
  // Calls of AcquirePreflight.
  int num_preflight_asks() const {
    absl::MutexLock lock(&mutex_);
    return num_preflight_asks_;
  }

  int num_goodbyes() const {
    absl::MutexLock lock(&mutex_);
    return num_goodbyes_;
  }
  std::vector<Bytes> capacities() const {
    absl::MutexLock lock(&mutex_);
    return capacities_;
  }

  // Wait until so many have happened; false after 20 s.
  bool AwaitBeats(size_t count) const {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return beats_.size() >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }
  bool AwaitAcquires(size_t count) const {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return capacities_.size() >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }
  bool AwaitPreflightReports(size_t count) const {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return preflight_reports_.size() >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }
  bool AwaitPreflightAsks(int count) const {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return num_preflight_asks_ >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }
  // What people should know has `part` in it.
  bool AwaitNotice(const std::string& part) const {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return absl::StrContains(notice_, part); };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }
  // A registration with data sets.
  bool AwaitDataSets() const {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] {
      return !registrations_.empty() && !registrations_.back().data_sets.empty();
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }
  bool AwaitFinishAnswers(int count) const {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return num_finish_answers_ >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }
  bool AwaitRefusals(int count) const {
    absl::MutexLock lock(&mutex_);
    const auto reached = [&] { return num_refused_ >= count; };
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), kPatience);
  }

  // ---- CoordinatorClient ----

  absl::StatusOr<Registration> RegisterWorker(const WorkerFacts& facts,
                                              const std::string& predecessor) override {
    absl::MutexLock lock(&mutex_);
    if (absl::Status away = AwayStatus(); !away.ok()) return away;
    if (!register_status_.ok()) return register_status_;
    registrations_.push_back(facts);
    predecessors_.push_back(predecessor);
    session_ = absl::StrCat("session-", registrations_.size());
    return Registration{.session = session_,
                        .heartbeat_interval = heartbeat_interval_,
                        .studies_version = studies_version_};
  }

  absl::StatusOr<AcquireResult> AcquireTrial(const std::string& session, const std::string&,
                                             absl::Duration wait, Bytes capacity,
                                             const std::function<bool()>& cancelled) override {
    absl::MutexLock lock(&mutex_);
    capacities_.push_back(capacity);
    waits_.push_back(wait);
    if (absl::Status away = AwayStatus(); !away.ok()) return away;
    if (!acquire_failures_.empty()) {
      const absl::Status failure = acquire_failures_.front();
      acquire_failures_.pop_front();
      return failure;
    }
    if (session != session_) return absl::NotFoundError("unknown session");
    AcquireResult result{.studies_version = studies_version_};
    if (!queue_.empty()) {
      result.assignment = std::move(queue_.front());
      queue_.pop_front();
      return result;
    }
    result.all_studies_finished = finishes_;
    if (finishes_) result.finished = finished_;
    if (finishes_ || wait <= absl::ZeroDuration()) return result;
    // A long poll without work ends when something changes. `cancelled` is no state of ours, so it
    // is asked again and again.
    const int64_t version = studies_version_;
    const auto over = [&] {
      return away_ || !queue_.empty() || session != session_ || version != studies_version_;
    };
    const SystemClock clock;
    const absl::Duration deadline = clock.Monotonic() + wait;
    while (!over() && !cancelled() && clock.Monotonic() < deadline) {
      mutex_.AwaitWithTimeout(absl::Condition(&over), absl::Milliseconds(10));
    }
    if (cancelled()) return absl::CancelledError("cancelled");
    result.studies_version = studies_version_;
    return result;
  }

  absl::StatusOr<HeartbeatResult> Heartbeat(const std::string& session,
                                            const std::vector<LeaseBeat>& beats, Bytes,
                                            const std::string& notice, bool leaving) override {
    absl::MutexLock lock(&mutex_);
    notice_ = notice;
    if (absl::Status away = AwayStatus(); !away.ok()) return away;
    HeartbeatResult result{.directives = {}, .next = heartbeat_interval_};
    if (session != session_) {
      result.register_again = true;
      return result;
    }
    if (leaving) {
      session_.clear();
      ++num_goodbyes_;
      named_in_goodbye_ = beats;
      return result;
    }
    beats_.push_back(beats);
    for (const LeaseBeat& beat : beats) {
      const auto own = directive_for_.find(beat.lease.trial.number.value);
      result.directives.push_back(own == directive_for_.end() ? directive_ : own->second);
    }
    return result;
  }

  absl::StatusOr<ReportResult> ReportMeasurements(const std::string& session,
                                                  const AttemptReport& report) override {
    std::function<void(const AttemptReport&)> callback;
    ReportResult result;
    {
      absl::MutexLock lock(&mutex_);
      callback = on_report_;
      if (absl::Status away = AwayStatus(); !away.ok()) return away;
      if (session != session_) return absl::NotFoundError("unknown session");
      if (!report_status_.ok()) return report_status_;
      reports_.push_back(report);
      for (const Measurement& measurement : report.measurements) {
        result.should_stop |= measurement.step >= stop_from_step_;
      }
      result.directive = directive_;
    }
    if (callback) callback(report);
    if (result.should_stop) {
      result.pruner = "median";
      result.why = "worse than the median";
    }
    return result;
  }

  absl::StatusOr<FinishResult> FinishTrial(const std::string& session,
                                           const std::string& request_id,
                                           const FinishRequest& request) override {
    const Finish finish{session, request_id, request};
    std::function<absl::Status(const Finish&)> callback;
    {
      absl::MutexLock lock(&mutex_);
      ++num_finish_calls_;
      callback = on_finish_;
    }
    const absl::Status answer = callback ? callback(finish) : absl::OkStatus();
    absl::MutexLock lock(&mutex_);
    ++num_finish_answers_;
    if (absl::Status away = AwayStatus(); !away.ok()) return away;
    if (!answer.ok()) return answer;
    if (session != session_) return absl::NotFoundError("unknown session");
    if (stored_.emplace(request_id, finish).second) results_.push_back(request);
    const auto told = state_after_finish_.find(request.lease.trial.number.value);
    return FinishResult{
        .state = told == state_after_finish_.end() ? StateOf(request.outcome) : told->second,
        .stored = true};
  }

  absl::StatusOr<TrialState> ReleaseTrial(const std::string& session, const std::string&,
                                          const TrialRelease& release) override {
    absl::MutexLock lock(&mutex_);
    if (absl::Status away = AwayStatus(); !away.ok()) return away;
    if (session != session_) return absl::NotFoundError("unknown session");
    releases_.push_back(release);
    return TrialState::kQueued;
  }

  absl::StatusOr<std::optional<Preflight>> AcquirePreflight(
      const std::string& session, absl::Duration wait,
      const std::function<bool()>& cancelled) override {
    absl::MutexLock lock(&mutex_);
    ++num_preflight_asks_;
    if (absl::Status away = AwayStatus(); !away.ok()) return away;
    const auto over = [&] { return away_ || !preflights_.empty() || session != session_; };
    const SystemClock clock;
    const absl::Duration deadline = clock.Monotonic() + wait;
    while (!over() && !cancelled() && clock.Monotonic() < deadline) {
      mutex_.AwaitWithTimeout(absl::Condition(&over), absl::Milliseconds(10));
    }
    if (session != session_) return absl::NotFoundError("unknown session");
    if (cancelled()) return absl::CancelledError("cancelled");
    if (preflights_.empty()) return std::nullopt;
    Preflight preflight = std::move(preflights_.front());
    preflights_.pop_front();
    return preflight;
  }

  absl::Status ReportPreflight(const std::string& session, const PreflightReport& report) override {
    absl::MutexLock lock(&mutex_);
    if (absl::Status away = AwayStatus(); !away.ok()) return away;
    if (!preflight_failures_.empty()) {
      const absl::Status failure = preflight_failures_.front();
      preflight_failures_.pop_front();
      return failure;
    }
    if (session != session_) return absl::NotFoundError("unknown session");
    preflight_reports_.push_back(report);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<agent::StudyData>> ListStudyData() override {
    absl::MutexLock lock(&mutex_);
    if (absl::Status away = AwayStatus(); !away.ok()) return away;
    return studies_;
  }

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(20);

  absl::Status AwayStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!away_) return absl::OkStatus();
    ++num_refused_;
    return absl::UnavailableError("away");
  }

  mutable absl::Mutex mutex_;
  std::deque<Preflight> preflights_ ABSL_GUARDED_BY(mutex_);
  std::deque<absl::Status> preflight_failures_ ABSL_GUARDED_BY(mutex_);
  std::vector<PreflightReport> preflight_reports_ ABSL_GUARDED_BY(mutex_);
  int num_preflight_asks_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<absl::Status> acquire_failures_ ABSL_GUARDED_BY(mutex_);
  std::deque<Assignment> queue_ ABSL_GUARDED_BY(mutex_);
  bool away_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishes_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<FinishedStudy> finished_ ABSL_GUARDED_BY(mutex_);
  std::string session_ ABSL_GUARDED_BY(mutex_);
  int64_t studies_version_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<agent::StudyData> studies_ ABSL_GUARDED_BY(mutex_);
  Directive directive_ ABSL_GUARDED_BY(mutex_) = Directive::kContinue;
  std::map<int64_t, Directive> directive_for_ ABSL_GUARDED_BY(mutex_);
  absl::Duration heartbeat_interval_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(5);
  int64_t stop_from_step_ ABSL_GUARDED_BY(mutex_) = INT64_MAX;
  absl::Status report_status_ ABSL_GUARDED_BY(mutex_);
  absl::Status register_status_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const AttemptReport&)> on_report_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status(const Finish&)> on_finish_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, TrialState> state_after_finish_ ABSL_GUARDED_BY(mutex_);

  std::map<std::string, Finish> stored_ ABSL_GUARDED_BY(mutex_);
  std::vector<FinishRequest> results_ ABSL_GUARDED_BY(mutex_);
  int num_finish_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_finish_answers_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_refused_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> predecessors_ ABSL_GUARDED_BY(mutex_);
  int num_goodbyes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<LeaseBeat> named_in_goodbye_ ABSL_GUARDED_BY(mutex_);
  std::vector<TrialRelease> releases_ ABSL_GUARDED_BY(mutex_);
  std::vector<AttemptReport> reports_ ABSL_GUARDED_BY(mutex_);
  std::vector<WorkerFacts> registrations_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<LeaseBeat>> beats_ ABSL_GUARDED_BY(mutex_);
  std::string notice_ ABSL_GUARDED_BY(mutex_);
  std::vector<Bytes> capacities_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Duration> waits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hpo
