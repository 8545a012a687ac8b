// What happens to a configuration if it is not known whether it fits a worker's GPU. Pure.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "common/protocol/preflight.h"

namespace hpo::server {

// After as long a configuration is given to its worker without a report of its dry run.
constexpr absl::Duration kLongestDryRun = absl::Minutes(10);
// How many configurations are held in a row while a worker runs one trial.
constexpr int kMostLookAheads = 16;

enum class PreflightStep {
  kGive,  // the worker gets it
  kHold,  // the worker is to dry-run it first
  kWait,  // it, or another one for the same worker, is being dry-run
  kDrop,  // it is proposed no more: another one is
};

// Of a configuration that is not held. `sure`: whether it fits is known. `other_held`: another one
// is held for the worker.
PreflightStep StepFor(bool sure, bool other_held);

// One that is held.
struct HeldSituation {
  bool answered = false;    // its dry run was reported
  absl::Duration held_for;  // since it was held
  bool sure = false;        // as above, by now
  bool fits = true;         // as far as is known by now
  bool may_dry_run = true;  // the worker can dry-run for its study
};
PreflightStep StepForHeld(const HeldSituation& situation);
// Whether its report has not come in time.
bool IsOverdue(const HeldSituation& situation);

// Whether configurations that would be dry-run are left out where others are known to fit: of a
// study that has proposed `num_trials` and made `num_dry_runs` on this kind of GPU.
bool SavesDryRuns(int64_t num_dry_runs, int64_t num_trials);

// What a report of a dry run means for its configuration: whether it is given up. `fits`: whether
// it fits by what is known with the report.
bool IsRefused(PreflightState state, bool fits);

// Whether to look for the next configuration of a worker. `num_before`: how often this was done
// while it runs the same trial.
bool LooksAhead(bool runs_trial, bool holds, int num_before);

}  // namespace hpo::server
