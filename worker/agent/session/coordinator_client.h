// The agent's side of the server, in values. One call is one attempt to reach it: callers decide
// about trying again (every call is safe to repeat) and about what to tell people meanwhile.
//
// Codes common to all calls:
//   Unavailable, DeadlineExceeded  the server is away or draining (see IsServerAway)
//   NotFound                       it does not know the session: register again
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/preflight.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"

namespace hpo::agent {

// What a study needs of a worker, as its file names it.
struct StudyData {
  std::string study;
  std::string train;
  std::string validation;
  std::string task = "text-classification";
  std::vector<std::string> command;  // TrainerSpec
  std::string workdir;
  int64_t gpus = 1;                          // that each trial takes
  std::vector<std::string> parameters = {};  // names; a trial may have some of them only
  // Why nothing of it runs any more; nullopt: it still runs.
  std::optional<FinishedStudy> end = {};
  bool operator==(const StudyData&) const = default;
};

// Thread-safe.
class CoordinatorClient {
 public:
  virtual ~CoordinatorClient() = default;

  // `predecessor`: the instance key of the last process before this one that used the same state
  // folder, whose lock this one has; empty: none is known.
  //   FailedPrecondition  a data set differs from the one an active study was begun with
  //   InvalidArgument     facts that the server refuses
  //   AlreadyExists       another process has the name, and is alive
  //   Unavailable         another process has the name, and whether it is alive is not known yet:
  //                       try again
  virtual absl::StatusOr<Registration> RegisterWorker(const WorkerFacts& facts,
                                                      const std::string& predecessor) = 0;

  // Waits up to `wait` on the server. Returns Cancelled soon after `cancelled` turns true.
  virtual absl::StatusOr<AcquireResult> AcquireTrial(const std::string& session,
                                                     const std::string& request_id,
                                                     absl::Duration wait, Bytes capacity,
                                                     const std::function<bool()>& cancelled) = 0;

  // One directive per beat, in order. While a client beats, it also attends: the server learns of
  // its end by that of the connection (WorkerService.Attend). `notice`: what people should know of
  // this worker. `leaving`: the last one, the process ends, and only what `beats` name is still to
  // be told.
  virtual absl::StatusOr<HeartbeatResult> Heartbeat(const std::string& session,
                                                    const std::vector<LeaseBeat>& beats,
                                                    Bytes capacity, const std::string& notice,
                                                    bool leaving) = 0;

  //   Aborted  the lease went to a newer attempt
  virtual absl::StatusOr<ReportResult> ReportMeasurements(const std::string& session,
                                                          const AttemptReport& report) = 0;

  // Durable on the server when it returns.
  //   Aborted  the lease went to a newer attempt, which has finished
  virtual absl::StatusOr<FinishResult> FinishTrial(const std::string& session,
                                                   const std::string& request_id,
                                                   const FinishRequest& request) = 0;

  //   Aborted  the lease went to a newer attempt
  virtual absl::StatusOr<TrialState> ReleaseTrial(const std::string& session,
                                                  const std::string& request_id,
                                                  const TrialRelease& release) = 0;

  // A configuration to dry-run, nullopt where there is none within `wait` on the server. Returns
  // Cancelled soon after `cancelled` turns true.
  //   Unimplemented  an older server
  virtual absl::StatusOr<std::optional<Preflight>> AcquirePreflight(
      const std::string& session, absl::Duration wait, const std::function<bool()>& cancelled) = 0;

  virtual absl::Status ReportPreflight(const std::string& session,
                                       const PreflightReport& report) = 0;

  // Every study, those that have ended too.
  virtual absl::StatusOr<std::vector<StudyData>> ListStudyData() = 0;
};

// Whether a call failed because nobody answered, so that it is worth trying again.
inline bool IsServerAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace hpo::agent
