// Tested by tests/server/api/fleet_api_test.cc.
#include "server/studies/worker_description.h"

#include "absl/strings/str_cat.h"

namespace hpo::server {

std::map<std::string, TrialId> TrialsByWorker(const SchedulerState& state) {
  std::map<std::string, TrialId> trials;
  for (const StudyRuntime* study : state.studies.All()) {
    for (const HeldLease& lease : study->open.leases()) {
      trials[lease.worker] = {.study = study->name(), .number = lease.trial};
    }
  }
  return trials;
}

WorkerStatus DescribeWorker(const SchedulerState& state, const RegisteredWorker& worker,
                            const std::map<std::string, TrialId>& trials) {
  const std::string& device = worker.facts.device.name;
  const int64_t gpus = worker.facts.gpus;
  WorkerStatus status{.name = worker.facts.worker,
                      .device = gpus > 1 ? absl::StrCat(gpus, " x ", device) : device,
                      .capacity = worker.facts.capacity,
                      .alive = worker.alive,
                      .last_heartbeat = worker.last_heartbeat,
                      .notice = worker.Notice(),
                      .drained = state.drained.Contains(worker.facts.worker)};
  if (const auto trial = trials.find(status.name); trial != trials.end()) {
    status.trial = trial->second;
  }
  return status;
}

}  // namespace hpo::server
