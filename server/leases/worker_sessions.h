// Workers come, give signs of life, and leave.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "server/leases/lease_control.h"
#include "server/studies/scheduler_state.h"

namespace hpo::server {

// Thread-safe. Codes: WorkerApi.
class WorkerSessions {
 public:
  // Both outlive it.
  WorkerSessions(SchedulerState& state, LeaseControl& leases) : state_(state), leases_(leases) {}

  absl::StatusOr<Registration> RegisterWorker(const WorkerFacts& facts,
                                              const std::string& predecessor = "");
  absl::StatusOr<HeartbeatResult> Heartbeat(const std::string& session,
                                            const std::vector<LeaseBeat>& beats, Bytes capacity,
                                            const std::string& notice = "",
                                            Goodbye goodbye = Goodbye::kNone);

 private:
  absl::Status CheckData(const WorkerFacts& facts) const;
  // Remembers what the holder of a lease says of its trial.
  void Note(const LeaseBeat& beat) const;
  absl::Status TakeBackOfOlderInstance(const WorkerFacts& facts, NameGrant how);
  // Gives back what the worker, which has left, was granted and does not hold.
  absl::Status TakeBackAllBut(const std::vector<LeaseBeat>& still_held, const WorkerFacts& left,
                              LeaseLoss why);

  SchedulerState& state_;
  LeaseControl& leases_;
};

}  // namespace hpo::server
