#include "server/api/fleet_api.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "server/placement/capability.h"
#include "server/storage/study_store.h"
#include "server/studies/worker_description.h"

namespace hpo::server {
namespace {

constexpr size_t kMostListed = 20;  // in a message

absl::Status CheckChoice(const WorkerChoice& choice) {
  if (choice.names.empty() == choice.all) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("workers: expected names or all, got ", choice.all ? "both" : "neither"));
}

// Why a worker that serves none of the studies that run gets no trial; empty: it serves one, or
// none runs.
std::string WhyServesNone(const SchedulerState& state, const WorkerFacts& facts) {
  std::string why;
  for (const StudyRuntime* study : state.studies.All()) {
    if (study->standing().finished) continue;
    const absl::Status serves = CheckServes(study->spec(), facts);
    if (serves.ok()) return "";
    why = std::string(serves.message());
  }
  return why;
}

}  // namespace

std::vector<WorkerStatus> FleetApi::ListWorkers() const {
  const SchedulerState& state = scheduler_.state();
  const std::map<std::string, WorkerTrial> trials = TrialsByWorker(state);
  std::vector<WorkerStatus> listed;
  for (const RegisteredWorker& worker : state.workers.List()) {
    // Of a name that was only asked for there are no facts.
    if (worker.facts.worker.empty()) continue;
    WorkerStatus& status = listed.emplace_back(DescribeWorker(state, worker, trials));
    const bool is_idle = status.alive && !status.trial && !status.drained;
    const std::string why = is_idle ? WhyServesNone(state, worker.facts) : "";
    absl::StrAppend(&status.notice, status.notice.empty() || why.empty() ? "" : "; ", why);
  }
  return listed;
}

absl::Status FleetApi::CheckKnown(const std::vector<std::string>& names) const {
  const SchedulerState& state = scheduler_.state();
  for (const std::string& name : names) {
    if (state.workers.Find(name) || state.drained.Contains(name)) continue;
    std::vector<std::string> known;
    for (const WorkerStatus& worker : ListWorkers()) known.push_back(worker.name);
    const bool many = known.size() > kMostListed;
    known.resize(std::min(known.size(), kMostListed));
    return absl::NotFoundError(absl::StrCat(
        "worker '", name, "': expected one that has registered since the server started, ",
        known.empty() ? "of which there is none"
                      : absl::StrCat("such as ", absl::StrJoin(known, ", ")),
        many ? ", ..." : ""));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FleetApi::DrainWorkers(const WorkerChoice& choice,
                                                                bool now) {
  HPO_RETURN_IF_ERROR(CheckChoice(choice));
  HPO_RETURN_IF_ERROR(CheckKnown(choice.names));
  SchedulerState& state = scheduler_.state();
  std::vector<std::string> names = choice.names;
  if (choice.all) {
    for (const WorkerFacts& worker : state.workers.Alive()) names.push_back(worker.worker);
  }
  const auto insert = [&](Database& database) -> absl::Status {
    for (const std::string& name : names) {
      HPO_RETURN_IF_ERROR(StudyStore(database).DrainWorker(name, state.clock.Now()));
    }
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state.store->Write(insert, [&] { state.drained.Add(names); }));
  // Those that wait for a trial learn of it.
  state.work.Raise();
  if (now) HPO_RETURN_IF_ERROR(PreemptTrialsOf(names));
  return names;
}

absl::Status FleetApi::PreemptTrialsOf(const std::vector<std::string>& names) {
  const std::set<std::string> chosen(names.begin(), names.end());
  for (const auto& [worker, trial] : TrialsByWorker(scheduler_.state())) {
    if (!chosen.contains(worker)) continue;
    const absl::Status ordered = scheduler_.orders().PreemptTrial(trial.id.study, trial.id.number);
    // It has ended meanwhile.
    if (!absl::IsFailedPrecondition(ordered)) HPO_RETURN_IF_ERROR(ordered);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FleetApi::ResumeWorkers(const WorkerChoice& choice) {
  HPO_RETURN_IF_ERROR(CheckChoice(choice));
  HPO_RETURN_IF_ERROR(CheckKnown(choice.names));
  SchedulerState& state = scheduler_.state();
  std::vector<std::string> names = choice.names;
  if (choice.all) {
    const std::set<std::string> drained = state.drained.All();
    names.assign(drained.begin(), drained.end());
  }
  const auto remove = [&](Database& database) -> absl::Status {
    for (const std::string& name : names) {
      HPO_RETURN_IF_ERROR(StudyStore(database).ResumeWorker(name));
    }
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state.store->Write(remove, [&] { state.drained.Remove(names); }));
  state.work.Raise();
  return names;
}

}  // namespace hpo::server
