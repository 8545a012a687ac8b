// What workers tell of the trials that they run: measurements, results, and that they give one
// back.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/worker_exchange.h"
#include "common/study/trial.h"
#include "server/leases/lease_control.h"
#include "server/storage/records.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/trial_writer.h"

namespace hpo::server {

// Thread-safe. What is told is durable when a call returns OK. A trial whose rows cannot be read is
// quarantined and the call fails with DataLoss; other codes: WorkerApi, TrialWriter::Write.
class ResultRecorder {
 public:
  // Both outlive it.
  ResultRecorder(SchedulerState& state, LeaseControl& leases) : state_(state), leases_(leases) {}

  // Renews the lease, too, as a heartbeat does; what the pruner says of the trial.
  absl::StatusOr<ReportResult> ReportMeasurements(const AttemptReport& report);
  absl::StatusOr<FinishResult> FinishTrial(const std::string& request_id,
                                           const FinishRequest& request);
  // The trial's state then: it runs again, or has ended (retry_policy.h).
  absl::StatusOr<TrialState> ReleaseTrial(const std::string& request_id,
                                          const TrialRelease& release);

 private:
  // What an attempt's end says about memory.
  struct MemoryVerdict {
    std::optional<ResidualRecord> residual;
    bool oom_explained = true;  // OomCircumstances::explained
  };
  absl::StatusOr<MemoryVerdict> JudgeMemory(const StudyRuntime& study,
                                            const FinishRequest& request) const;
  absl::StatusOr<FinishResult> Finish(TrialTransaction& transaction, const StudyRuntime& study,
                                      const FinishRequest& request,
                                      const MemoryVerdict& judged) const;
  // The trial's state after it.
  absl::StatusOr<TrialState> Release(TrialTransaction& transaction, const StudyRuntime& study,
                                     const TrialRelease& release) const;

  SchedulerState& state_;
  LeaseControl& leases_;
};

}  // namespace hpo::server
