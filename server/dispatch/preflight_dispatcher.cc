// Tested by tests/server/scheduler/preflight_test.cc.
#include "server/dispatch/preflight_dispatcher.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "server/dispatch/offer.h"
#include "server/dispatch/preflight_policy.h"
#include "server/dispatch/waiting_trials.h"
#include "server/placement/capability.h"

namespace hpo::server {
namespace {

// "study #3, attempt 1": what the worker runs; empty: nothing.
std::string RunningOn(const SchedulerState& state, const std::string& worker) {
  for (const StudyRuntime* study : state.studies.All()) {
    for (const HeldLease& lease : study->open.leases()) {
      if (lease.worker != worker) continue;
      return absl::StrCat(study->name(), " #", lease.trial.value, ", ", lease.attempt.value);
    }
  }
  return "";
}

// The rows of one report, the worker's own GPU first.
std::vector<DryRunRecord> RowsOf(const HeldProposal& held, const WorkerFacts& facts,
                                 const PreflightReport& report, absl::Time now) {
  std::vector<PreflightNeed> needs = report.needs;
  if (needs.empty()) needs.emplace_back();
  needs.front().capability = facts.device.capability;
  needs.front().threads = ResidentThreads(facts.device);
  std::vector<DryRunRecord> rows;
  for (PreflightNeed& need : needs) {
    // A need of nothing would fit everywhere.
    const bool found = need.state != PreflightState::kMeasured || need.required.count > 0;
    if (!found) need.state = PreflightState::kFailed;
    rows.push_back({.params = held.params,
                    .worker = facts.worker,
                    .need = std::move(need),
                    .took = report.took,
                    .message = Shortened(report.message, kTextLimit),
                    .time = now});
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::optional<Preflight>> PreflightDispatcher::AcquirePreflight(
    const std::string& session, absl::Duration wait, const std::function<bool()>& cancelled) {
  const absl::Duration asked = state_.clock.Monotonic();
  const absl::Duration longest = std::min(wait, kLongestAcquire);
  for (;;) {
    const int64_t seen = desk_.news().generation();
    HPO_ASSIGN_OR_RETURN(const RegisteredWorker worker,
                         state_.workers.Touch(session, std::nullopt));
    if (state_.work.draining()) return std::nullopt;
    LookAhead(worker.facts);
    std::optional<Preflight> preflight = GiveOut(session, worker.facts);
    if (preflight.has_value()) return preflight;
    for (bool woken = false; !woken;) {
      const absl::Duration left = longest - (state_.clock.Monotonic() - asked);
      const bool over = left <= absl::ZeroDuration() || state_.work.draining();
      if (over || (cancelled && cancelled())) return std::nullopt;
      woken = desk_.news().AwaitAfter(seen, std::min(left, kAcquireCancellationCheck));
    }
  }
}

void PreflightDispatcher::LookAhead(const WorkerFacts& facts) {
  const bool holds = desk_.Of(facts.worker).has_value();
  const std::string running = holds ? "" : RunningOn(state_, facts.worker);
  if (running.empty() || !LooksAhead(true, holds, desk_.CountLookAhead(facts.worker, running))) {
    return;
  }
  std::multimap<size_t, StudyRuntime*> by_running;
  for (StudyRuntime* study : state_.studies.All()) {
    const StudyStanding standing = study->standing();
    if (standing.finished || standing.order == StudyOrder::kPause) continue;
    if (!MayDryRun(*study, study->spec(), facts) || !CheckOffer(*study, facts).ok()) continue;
    by_running.emplace(study->open.load().num_held, study);
  }
  for (const auto& [num_running, study] : by_running) {
    if (!proposer_.LookAhead(*study, facts)) continue;
    // What is sure is proposed afresh when the worker asks.
    if (!desk_.Of(facts.worker).has_value()) desk_.EndLookAheads(facts.worker);
    return;
  }
}

std::optional<Preflight> PreflightDispatcher::GiveOut(const std::string& session,
                                                      const WorkerFacts& facts) {
  const std::optional<HeldProposal> held = desk_.GiveOut(facts.worker, session);
  if (!held.has_value()) return std::nullopt;
  const absl::StatusOr<StudyRuntime*> study = state_.studies.Find(held->study);
  if (!study.ok() || (*study)->id() != held->study_id) {
    desk_.Drop(facts.worker);
    return std::nullopt;
  }
  const StudySpec spec = (*study)->spec();
  Trial trial;
  trial.id = TrialId{held->study, held->queued.value_or((*study)->next_number())};
  trial.params = held->params;
  WorkerFacts alone = facts;
  alone.capacity = CapacityAlone(facts);
  const Placement placement = PlaceTrial(spec, alone, trial, state_.Knowledge(**study, alone));
  AttemptRecord attempt;
  attempt.attempt.plan = placement.plan;
  attempt.limit = placement.usable;
  return Preflight{.id = held->id,
                   .assignment = MakeAssignment(spec, trial, attempt),
                   .others = OtherGpus(**study, facts)};
}

std::vector<DeviceProfile> PreflightDispatcher::OtherGpus(const StudyRuntime& study,
                                                          const WorkerFacts& facts) const {
  using Kind = std::pair<std::string, int64_t>;
  std::set<Kind> kinds = {Kind(facts.device.capability, ResidentThreads(facts.device))};
  std::vector<DeviceProfile> others;
  for (const WorkerFacts& worker : state_.workers.Alive()) {
    if (!GoesByDryRuns(study.spec(), worker) || !CheckOffer(study, worker).ok()) continue;
    const bool is_new =
        kinds.insert(Kind(worker.device.capability, ResidentThreads(worker.device))).second;
    if (is_new) others.push_back(worker.device);
  }
  return others;
}

absl::Status PreflightDispatcher::ReportPreflight(const std::string& session,
                                                  const PreflightReport& report) {
  HPO_ASSIGN_OR_RETURN(const RegisteredWorker worker, state_.workers.Touch(session, std::nullopt));
  WorkerFacts alone = worker.facts;
  alone.capacity = CapacityAlone(worker.facts);
  const std::string& name = worker.facts.worker;
  const std::optional<HeldProposal> held = desk_.Of(name);
  if (!held.has_value() || held->id != report.id) return absl::OkStatus();
  const absl::StatusOr<StudyRuntime*> found = state_.studies.Find(held->study);
  if (!found.ok() || (*found)->id() != held->study_id) {
    desk_.Drop(name);
    return absl::OkStatus();
  }
  StudyRuntime& study = **found;
  std::vector<DryRunRecord> rows = RowsOf(*held, worker.facts, report, state_.clock.Now());
  Trial trial;
  trial.params = held->params;
  std::vector<DryRunRecord> known = study.dry_runs.All();
  known.insert(known.end(), rows.begin(), rows.end());
  const MemoryKnowledge knowledge = KnowledgeFor(
      study.spec(), alone, {.history = study.history(), .dry_runs = known, .may_dry_run = true},
      state_.calibration.Snapshot(), state_.replays);
  const bool refused =
      IsRefused(rows.front().need.state, PlaceTrial(study.spec(), alone, trial, knowledge).fits);
  rows.front().refused = refused;
  int64_t number = 0;
  const auto write = [&](TrialTransaction& transaction) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(number, transaction.dry_runs.Insert(rows));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state_.writer.Write(study, write));
  const bool failed = rows.front().need.state == PreflightState::kFailed;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].number = number;
    rows[i].position = static_cast<int64_t>(i);
  }
  study.dry_runs.Add(std::move(rows));
  study.dry_runs.Ended(name, failed);
  if (refused) {
    desk_.Drop(name);
  } else {
    desk_.Answer(name, report.id);
  }
  state_.work.Raise();
  desk_.news().Raise();
  return absl::OkStatus();
}

}  // namespace hpo::server
