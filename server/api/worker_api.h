// What each WorkerService request does, in value types. Thread-safe.
//
// A call about a lease fails with Aborted when the lease went to a newer attempt or was taken back
// for good: the caller stops its trainer. NotFound: unknown session, study, trial or attempt. Both
// carry a Refusal (common/protocol/refusal.h), except for an unknown session. FailedPrecondition
// with a Refusal: the lease is of another database.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/preflight.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "common/space/search_space.h"
#include "common/study/study.h"
#include "common/study/trial.h"

namespace hpo::server {

class TrialScheduler;

class WorkerApi {
 public:
  explicit WorkerApi(TrialScheduler& scheduler) : scheduler_(scheduler) {}

  //   InvalidArgument     no worker name or instance key, a capacity < 0
  //   FailedPrecondition  a data set's digest differs from the one an active study was begun with
  //   Unavailable, AlreadyExists  the name is another process's (WorkerNames::Claim)
  // `predecessor`: NamedProcess.
  absl::StatusOr<Registration> RegisterWorker(const WorkerFacts& facts,
                                              const std::string& predecessor = "");

  // Blocks until there is a trial, `wait` (at most 50 s) is over, `cancelled` returns true or the
  // server drains. The same request_id returns the same assignment while its lease lives.
  absl::StatusOr<AcquireResult> AcquireTrial(const std::string& session,
                                             const std::string& request_id, absl::Duration wait,
                                             Bytes capacity,
                                             const std::function<bool()>& cancelled);

  // `goodbye`: what the process holds and does not name in `beats` goes to others; where it died,
  // as what a lost worker held. Unknown session: register_again, never an error (a restarted server
  // re-adopts leases by token).
  absl::StatusOr<HeartbeatResult> Heartbeat(const std::string& session,
                                            const std::vector<LeaseBeat>& beats, Bytes capacity,
                                            const std::string& notice = "",
                                            Goodbye goodbye = Goodbye::kNone);

  // The session holds its stream open, or does no longer (worker.proto, Attend).
  //   NotFound  unknown session
  absl::Status Attend(const std::string& session);
  void StopAttending(const std::string& session);

  absl::StatusOr<ReportResult> ReportMeasurements(const AttemptReport& report);

  // Durable when it returns. A repeated call returns the recorded result.
  absl::StatusOr<FinishResult> FinishTrial(const std::string& request_id,
                                           const FinishRequest& request);

  absl::StatusOr<TrialState> ReleaseTrial(const std::string& request_id,
                                          const TrialRelease& release);

  // Blocks until there is a configuration to dry-run, `wait` (at most 50 s) is over, `cancelled`
  // returns true or the server drains; nullopt then. A session gets each one once.
  //   NotFound  unknown session
  absl::StatusOr<std::optional<Preflight>> AcquirePreflight(const std::string& session,
                                                            absl::Duration wait,
                                                            const std::function<bool()>& cancelled);
  // Durable when it returns. A report that nobody waits for is dropped.
  //   NotFound         unknown session
  //   InvalidArgument  a size, a number of threads or a time < 0
  absl::Status ReportPreflight(const std::string& session, const PreflightReport& report);

 private:
  absl::Status CheckDatabase(const LeaseRef& lease) const;
  // Of a call about a lease: with the reason, where the database will never take it.
  template <typename Result>
  absl::StatusOr<Result> Explained(absl::StatusOr<Result> result) const;

  TrialScheduler& scheduler_;
};

}  // namespace hpo::server
