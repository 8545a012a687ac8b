// What a worker is to dry-run, and what its dry runs found.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/preflight.h"
#include "common/protocol/worker_facts.h"
#include "server/dispatch/preflight_desk.h"
#include "server/dispatch/trial_granter.h"
#include "server/dispatch/trial_proposer.h"
#include "server/leases/lease_control.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"

namespace hpo::server {

// Thread-safe.
class PreflightDispatcher {
 public:
  // All outlive it.
  PreflightDispatcher(SchedulerState& state, LeaseControl& leases, PreflightDesk& desk)
      : state_(state), desk_(desk), granter_(state, leases), proposer_(state, granter_, desk) {}
  PreflightDispatcher(const PreflightDispatcher&) = delete;

  // Codes: WorkerApi.
  absl::StatusOr<std::optional<Preflight>> AcquirePreflight(const std::string& session,
                                                            absl::Duration wait,
                                                            const std::function<bool()>& cancelled);
  absl::Status ReportPreflight(const std::string& session, const PreflightReport& report);

 private:
  // Holds what the worker would get next, where it is busy and that is to be dry-run.
  void LookAhead(const WorkerFacts& facts);
  std::optional<Preflight> GiveOut(const std::string& session, const WorkerFacts& facts);
  std::vector<DeviceProfile> OtherGpus(const StudyRuntime& study, const WorkerFacts& facts) const;

  SchedulerState& state_;
  PreflightDesk& desk_;
  TrialGranter granter_;
  TrialProposer proposer_;
};

}  // namespace hpo::server
