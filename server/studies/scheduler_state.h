// What the parts of the scheduler share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/placement/live_calibration.h"
#include "server/placement/placement.h"
#include "server/storage/store.h"
#include "server/studies/study_registry.h"
#include "server/studies/study_runtime.h"
#include "server/studies/trial_writer.h"
#include "server/trials/work_signal.h"
#include "server/workers/drained_workers.h"
#include "server/workers/lease.h"
#include "server/workers/worker_registry.h"

namespace hpo::server {

struct SchedulerOptions {
  LeasePolicy lease;
  // How often a thread calls LeaseSweeper::Tick(); zero: nobody does (tests).
  absl::Duration tick_interval = absl::Seconds(1);
  StudyFactories factories;
  // Called after a commit with each trial that it changed; returns at once. May be empty.
  std::function<void(const TrialId&)> on_trial_changed;
};

// One start of a server on its database.
struct ServerEpoch {
  int64_t number = 0;
  std::string database;      // identifies it (StudyStore::DatabaseId)
  std::string token_secret;  // lease_token.h
};

//   Codes: Store::Write
absl::StatusOr<ServerEpoch> BeginEpoch(Store& store, absl::Time now);

// Whether the worker can dry-run one more configuration of the study: GoesByDryRuns, and its last
// three dry runs have not all failed. `spec` is the study's.
bool MayDryRun(const StudyRuntime& study, const StudySpec& spec, const WorkerFacts& worker);

// Each member is constant or thread-safe.
struct SchedulerState {
  // `of_clock` outlives the state.
  SchedulerState(std::unique_ptr<Store> of_store, ServerEpoch of_epoch, const Clock& of_clock,
                 SchedulerOptions of_options)
      : store(std::move(of_store)),
        epoch(std::move(of_epoch)),
        clock(of_clock),
        options(std::move(of_options)),
        workers(of_clock, options.lease),
        studies(work),
        writer(*store, clock, calibration, work, options.on_trial_changed) {}

  // What trials have taught about memory by now, as decisions of `study` for `worker` go by it.
  MemoryKnowledge Knowledge(const StudyRuntime& study, const WorkerFacts& worker) const {
    return KnowledgeBy(study.history(), study, worker);
  }
  // The same by a history of the study that the caller has.
  MemoryKnowledge KnowledgeBy(const sampler::History& history, const StudyRuntime& study,
                              const WorkerFacts& worker) const {
    const StudySpec spec = study.spec();
    const std::vector<DryRunRecord> dry_runs = study.dry_runs.All();
    return KnowledgeFor(
        spec, worker,
        {.history = history, .dry_runs = dry_runs, .may_dry_run = MayDryRun(study, spec, worker)},
        calibration.Snapshot(), replays);
  }

  const std::unique_ptr<Store> store;
  const ServerEpoch epoch;
  const Clock& clock;
  const SchedulerOptions options;
  WorkerRegistry workers;
  DrainedWorkers drained;
  LiveCalibration calibration;
  const std::shared_ptr<memory::ReplayTable> replays = std::make_shared<memory::ReplayTable>();
  WorkSignal work;
  StudyRegistry studies;
  TrialWriter writer;
};

}  // namespace hpo::server
