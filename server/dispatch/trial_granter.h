// How a worker gets the lease of a trial that was chosen for it, once for each request.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/protocol/worker_exchange.h"
#include "common/protocol/worker_facts.h"
#include "server/dispatch/offer.h"
#include "server/leases/lease_control.h"
#include "server/placement/placement.h"
#include "server/storage/records.h"
#include "server/studies/scheduler_state.h"
#include "server/studies/study_runtime.h"
#include "server/studies/trial_writer.h"

namespace hpo::server {

// Thread-safe.
class TrialGranter {
 public:
  // Both outlive it.
  TrialGranter(SchedulerState& state, LeaseControl& leases) : state_(state), leases_(leases) {}

  // What the same request was given before, while its lease lives.
  //   Codes: Store::Read, AnswerStore::Find
  absl::StatusOr<std::optional<Assignment>> Replay(const Asker& asker);
  // The attempt that holds the trial of `record` from this transaction on.
  //   Codes: TrialStore, AttemptStore
  absl::StatusOr<AttemptRecord> Start(TrialTransaction& transaction, const StudyRuntime& study,
                                      const Asker& asker, TrialRecord& record,
                                      const Placement& placement);
  // To be called once that transaction is committed.
  void Started(StudyRuntime& study, const WorkerFacts& facts);
  // The worker may have left, or a newer process of its name may have come, while it was being
  // served: a lease granted after that was seen by nobody who gives such back.
  //   Codes: WorkerRegistry::Touch, whose failure takes the lease back
  absl::Status TakeBackUnlessThere(const std::string& session, const LeaseRef& lease);

 private:
  SchedulerState& state_;
  LeaseControl& leases_;
};

}  // namespace hpo::server
