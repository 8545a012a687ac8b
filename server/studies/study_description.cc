// Tested by tests/server/scheduler/restart_test.cc.
#include "server/studies/study_description.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "server/placement/capability.h"
#include "server/studies/blocked_study.h"
#include "server/studies/dry_run_counts.h"
#include "server/studies/held_trials.h"
#include "server/studies/study_end.h"
#include "server/studies/trial_writer.h"
#include "server/studies/worker_description.h"
#include "server/trials/time_by_use.h"

namespace hpo::server {
namespace {

std::string DescribeFailure(const sampler::TooManyFailures& failure, const Trial& last) {
  const auto* failed = last.outcome ? std::get_if<Failed>(&*last.outcome) : nullptr;
  return absl::StrCat(failure.why, "; the last, trial #", last.id.number.value, ", says:\n",
                      failed == nullptr ? "" : failed->message);
}

std::vector<WorkerStatus> WorkersOf(const SchedulerState& state, const StudyRuntime& study) {
  std::vector<WorkerStatus> statuses;
  const std::map<std::string, WorkerTrial> trials = TrialsByWorker(state);
  for (const RegisteredWorker& worker : state.workers.List()) {
    WorkerStatus status = DescribeWorker(state, worker, trials);
    const bool runs_here = status.trial && status.trial->study == study.name();
    // Workers of other studies are not this study's business.
    if (runs_here || CheckServes(study.spec(), worker.facts).ok()) {
      statuses.push_back(std::move(status));
    }
  }
  return statuses;
}

// Why nothing can be stored now; empty: it can. The same from one failed write to the next: it is a
// line in logs and watches whenever it changes.
std::string StorageTrouble(const Store& store) {
  const std::string trouble = store.trouble();
  if (trouble.empty()) return "";
  return absl::StrCat("the server cannot use its database, and tries again: ",
                      trouble.substr(0, trouble.find(" (code ")));
}

// Why those of `workers` that are idle get nothing; why nothing runs, or the study ended.
std::string WaitingFor(const SchedulerState& state, const StudyRuntime& study,
                       const StudyStanding& standing, const std::vector<WorkerStatus>& workers) {
  if (std::string why = WhyHeld(study.name(), standing); !why.empty()) return why;
  if (standing.finished) return standing.termination;
  if (std::string trouble = StorageTrouble(*state.store); !trouble.empty()) return trouble;
  const auto num_alive = std::count_if(workers.begin(), workers.end(),
                                       [](const WorkerStatus& worker) { return worker.alive; });
  std::vector<std::string> idle;
  if (std::string why = WhyEnding(standing); !why.empty()) idle.push_back(std::move(why));
  for (const WorkerStatus& worker : workers) {
    const std::string obstacle =
        worker.alive && !worker.trial ? study.obstacles.Of(worker.name) : "";
    if (obstacle.empty()) continue;
    idle.push_back(absl::StrCat(num_alive > 1 ? worker.name + ": " : "", obstacle));
  }
  // In steps: it is a line in logs and watches whenever it changes.
  for (std::string& silent : SilentTrials(state, study, absl::Seconds(10))) {
    idle.push_back(std::move(silent));
  }
  if (num_alive > 0 || study.open.load().num_held > 0) return absl::StrJoin(idle, "; ");
  const std::vector<WorkerFacts> others = state.workers.Alive();
  if (others.empty()) {
    return absl::StrCat("no worker is connected; run: ", WorkerCommands(study.spec()));
  }
  return std::string(CheckServes(study.spec(), others.back()).message());
}

// "host:gpu0 makes no more dry runs, as three in a row have failed; the last: ...", or why the last
// one that failed did.
std::string DryRunTrouble(const StudyRuntime& study, const std::vector<DryRunRecord>& dry_runs) {
  std::map<std::string, std::string> last;  // message by worker
  std::string last_failure;
  for (const DryRunRecord& dry_run : dry_runs) {
    last[dry_run.worker] = dry_run.message;
    if (dry_run.need.state == PreflightState::kFailed) {
      last_failure = absl::StrCat("the last that failed: ", dry_run.message);
    }
  }
  std::vector<std::string> troubles;
  for (const auto& [worker, message] : last) {
    if (!study.dry_runs.HasGivenUp(worker)) continue;
    troubles.push_back(absl::StrCat(worker, " makes no more, as ", DryRunLog::kMostFailedInARow,
                                    " in a row have failed; the last: ", message));
  }
  return troubles.empty() ? last_failure : absl::StrJoin(troubles, "; ");
}

}  // namespace

absl::StatusOr<StudyStatus> DescribeStudy(const SchedulerState& state, const std::string& name) {
  const absl::StatusOr<StudyRuntime*> found = state.studies.Find(name);
  if (absl::IsDataLoss(found.status())) {
    StudyStatus unreadable;
    unreadable.spec.name = name;
    unreadable.finished = true;  // nothing of it will ever run
    unreadable.runnable = 0;
    unreadable.unreadable = std::string(found.status().message());
    return unreadable;
  }
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, found);
  const StudyStanding standing = study->standing();
  StudyStatus status{.spec = study->spec(), .finished = standing.finished, .order = standing.order};
  status.unreadable = study->unreadable();
  // Read before the counts: a watch that goes on from here may repeat a change, never miss one.
  status.sequence = study->changes.last();
  status.runnable = standing.runnable;
  status.wall_clock_used = study->open.load().wall_clock;
  status.created = study->created();
  status.workers = WorkersOf(state, *study);
  status.waiting_for = WaitingFor(state, *study, standing, status.workers);
  status.blocked = IsBlocked(state, *study, state.work.generation());
  for (const StudyPrior& prior : study->priors()) {
    status.priors.push_back({.study = prior.study,
                             .num_trials = static_cast<int64_t>(prior.trials.size()),
                             .num_skipped = prior.num_skipped,
                             .why_skipped = prior.why_skipped});
  }
  const std::vector<DryRunRecord> dry_runs = study->dry_runs.All();
  const auto read = [&](const StudyRows& rows) -> absl::Status {
    if (!dry_runs.empty()) {
      HPO_ASSIGN_OR_RETURN(TrialTimes times, rows.dry_runs.LoadTimes());
      status.dry_runs = CountDryRuns(dry_runs, std::move(times));
    }
    if (standing.failure) {
      HPO_ASSIGN_OR_RETURN(const TrialRecord last, rows.trials.LoadTrial(standing.failure->last));
      status.failure = DescribeFailure(*standing.failure, last.trial);
    }
    HPO_ASSIGN_OR_RETURN(const auto ended, rows.attempts.SumEnded());
    if (!ended.empty()) status.time_by_use = SumByUse(ended, status.spec.trainer.gpus);
    HPO_ASSIGN_OR_RETURN(status.counts, rows.trials.Count());
    HPO_ASSIGN_OR_RETURN(status.attributes, rows.attributes.Load(kNoTrial));
    HPO_ASSIGN_OR_RETURN(const std::vector<Trial> best,
                         rows.trials.ListBest(status.spec.objectives.front().direction, 1));
    if (!best.empty()) {
      status.best_trial = best.front().id.number;
      status.best_value = best.front().value;
      status.best_violation = best.front().violation;
    }
    if (!status.priors.empty()) {
      HPO_ASSIGN_OR_RETURN(status.last_proposal, rows.suggestions.LoadLastSampler());
    }
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadRows(*state.store, *study, read));
  if (status.dry_runs.has_value()) status.dry_runs->trouble = DryRunTrouble(*study, dry_runs);
  return status;
}

}  // namespace hpo::server
