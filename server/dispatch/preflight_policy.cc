#include "server/dispatch/preflight_policy.h"

namespace hpo::server {
namespace {

// Dry runs that a study may make at once, and for each trial.
constexpr double kFirstDryRuns = 8.0;
constexpr double kDryRunsPerTrial = 0.25;

}  // namespace

bool SavesDryRuns(int64_t num_dry_runs, int64_t num_trials) {
  const double allowed = kFirstDryRuns + kDryRunsPerTrial * static_cast<double>(num_trials);
  return static_cast<double>(num_dry_runs) >= allowed;
}

PreflightStep StepFor(bool sure, bool other_held) {
  if (sure) return PreflightStep::kGive;
  return other_held ? PreflightStep::kWait : PreflightStep::kHold;
}

bool IsOverdue(const HeldSituation& situation) {
  return !situation.answered && situation.held_for >= kLongestDryRun;
}

PreflightStep StepForHeld(const HeldSituation& situation) {
  if (situation.sure && !situation.fits) return PreflightStep::kDrop;
  const bool decided = situation.answered || situation.sure || !situation.may_dry_run;
  if (decided || IsOverdue(situation)) return PreflightStep::kGive;
  return PreflightStep::kWait;
}

bool IsRefused(PreflightState state, bool fits) {
  return state == PreflightState::kMeasured && !fits;
}

bool LooksAhead(bool runs_trial, bool holds, int num_before) {
  return runs_trial && !holds && num_before < kMostLookAheads;
}

}  // namespace hpo::server
