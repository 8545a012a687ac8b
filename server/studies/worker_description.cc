// Tested by tests/server/api/fleet_api_test.cc.
#include "server/studies/worker_description.h"

#include "absl/strings/str_cat.h"
#include "server/studies/held_trials.h"

namespace hpo::server {
namespace {

std::string WhyIdle(const SchedulerState& state, const RegisteredWorker& worker) {
  const std::string& name = worker.facts.worker;
  if (state.drained.Contains(name)) return WhyDrained(name);
  if (!worker.alive || worker.idle.study.empty()) return worker.alive ? worker.idle.why : "";
  const absl::StatusOr<StudyRuntime*> study = state.studies.Find(worker.idle.study);
  return study.ok() ? OfStudy((*study)->name(), DescribeHeld(state, **study, name)) : "";
}

}  // namespace

std::map<std::string, WorkerTrial> TrialsByWorker(const SchedulerState& state) {
  std::map<std::string, WorkerTrial> trials;
  for (const StudyRuntime* study : state.studies.All()) {
    for (const HeldLease& lease : study->open.leases()) {
      trials[lease.worker] = {
          .id = {.study = study->name(), .number = lease.trial},
          .started = lease.started,
          .said = study->open.LastBeat(lease.trial, lease.attempt).value_or(LeaseBeat())};
    }
  }
  return trials;
}

WorkerStatus DescribeWorker(const SchedulerState& state, const RegisteredWorker& worker,
                            const std::map<std::string, WorkerTrial>& trials) {
  const std::string& device = worker.facts.device.name;
  const int64_t gpus = worker.facts.gpus;
  WorkerStatus status{.name = worker.facts.worker,
                      .device = gpus > 1 ? absl::StrCat(gpus, " x ", device) : device,
                      .capacity = worker.facts.capacity,
                      .alive = worker.alive,
                      .last_heartbeat = worker.last_heartbeat,
                      .notice = worker.Notice(),
                      .drained = state.drained.Contains(worker.facts.worker),
                      .gpus = gpus};
  const auto trial = trials.find(status.name);
  if (trial == trials.end()) {
    status.idle_because = WhyIdle(state, worker);
    return status;
  }
  const LeaseBeat& said = trial->second.said;
  status.trial = trial->second.id;
  status.trial_started = trial->second.started;
  status.allocated = said.allocated;
  status.reserved = said.reserved;
  status.step = said.step;
  status.stage = said.stage;
  return status;
}

}  // namespace hpo::server
