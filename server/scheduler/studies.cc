// TrialScheduler: studies are added, changed and described.
#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/study/study_edit.h"
#include "common/study/study_json.h"
#include "nlohmann/json.hpp"
#include "server/scheduler/placement/capability.h"
#include "server/scheduler/trial_scheduler.h"
#include "server/scheduler/warm_start.h"

namespace hpo {
namespace {

absl::Status AddChoices(const std::string& name, const std::vector<ParamValue>& choices,
                        SearchSpace& space) {
  const auto parameter =
      std::find_if(space.parameters.begin(), space.parameters.end(),
                   [&name](const Parameter& candidate) { return candidate.name == name; });
  if (parameter == space.parameters.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameter ", name, ": expected one of the study's parameters"));
  }
  auto* domain = std::get_if<CategoricalDomain>(&parameter->domain);
  if (domain == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parameter ", name, ": expected one with choices, got ", FormatDomain(parameter->domain)));
  }
  for (const ParamValue& choice : choices) {
    if (choice.index() != domain->choices.front().index()) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", name, ": expected a choice of the type of ",
                       FormatParam(domain->choices.front()), ", got ", FormatParam(choice)));
    }
    if (std::find(domain->choices.begin(), domain->choices.end(), choice) ==
        domain->choices.end()) {
      domain->choices.push_back(choice);
    }
  }
  return absl::OkStatus();
}

// `num_used` may be more than the budget: enqueued trials run whatever it is.
absl::StatusOr<int64_t> AddTrials(const Budget& budget, int64_t num_used, int64_t add) {
  if (!budget.trials) {
    return absl::InvalidArgumentError(
        "add_trials: expected a study with a budget of trials, got one without; set one (trials)");
  }
  const int64_t base = std::max(*budget.trials, num_used);
  if (add <= 0 || add > std::numeric_limits<int64_t>::max() - base) {
    return absl::InvalidArgumentError(
        absl::StrCat("add_trials: expected at least 1, on top of ", base, ", got ", add));
  }
  return base + add;
}

absl::StatusOr<StudySpec> Apply(const StudyUpdate& update, StudySpec spec, int64_t num_used) {
  if (update.trials) spec.budget.trials = *update.trials;
  if (update.add_trials) {
    HPO_ASSIGN_OR_RETURN(spec.budget.trials, AddTrials(spec.budget, num_used, *update.add_trials));
  }
  if (update.wall_clock) spec.budget.wall_clock = *update.wall_clock;
  if (update.failures_in_a_row) spec.budget.failures_in_a_row = *update.failures_in_a_row;
  if (update.failed_share) spec.budget.failed_share = update.failed_share;
  if (spec.budget.failed_share == 1.0) spec.budget.failed_share.reset();
  if (update.target || update.remove_target) spec.budget.target = update.target;
  if (spec.budget.trials.value_or(0) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("budget.trials: expected at least 0, got ", *spec.budget.trials));
  }
  if (spec.budget.wall_clock.value_or(absl::ZeroDuration()) < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("budget.wall_clock: expected at least 0");
  }
  for (const auto& [name, choices] : update.added_choices) {
    HPO_RETURN_IF_ERROR(AddChoices(name, choices, spec.space));
  }
  return spec;
}

std::string DescribeFailure(const TooManyFailures& failure, const Trial& last) {
  const auto* failed = last.outcome ? std::get_if<Failed>(&*last.outcome) : nullptr;
  return absl::StrCat(failure.why, "; the last, trial #", last.id.number.value, ", says:\n",
                      failed == nullptr ? "" : failed->message);
}

// What keeps the study from handing out trials; empty: nothing of this kind.
std::string WhyHeld(const StudyRuntime& study) {
  const std::string resume = absl::StrCat("; to go on: hpo study resume ", study.name());
  if (const auto failure = study.failure()) return absl::StrCat(failure->why, resume);
  if (study.order() == StudyOrder::kStop) return absl::StrCat("stopped", resume);
  if (study.order() == StudyOrder::kPause) return absl::StrCat("paused", resume);
  return "";
}

std::string BodyOf(const std::string& name, const StudyUpdate& update) {
  nlohmann::json body = {{"name", name}};
  if (update.trials) body["trials"] = *update.trials;
  if (update.add_trials) body["add_trials"] = *update.add_trials;
  if (update.wall_clock) body["wall_clock"] = absl::FormatDuration(*update.wall_clock);
  if (update.failures_in_a_row) body["failures_in_a_row"] = *update.failures_in_a_row;
  if (update.failed_share) body["failed_share"] = *update.failed_share;
  if (update.target) body["target"] = *update.target;
  if (update.remove_target) body["remove_target"] = true;
  for (const auto& [parameter, choices] : update.added_choices) {
    for (const ParamValue& choice : choices) {
      body["added_choices"][parameter].push_back(ParamToJson(choice));
    }
  }
  return body.dump();
}

}  // namespace

absl::StatusOr<bool> TrialScheduler::AddStudy(const StudySpec& spec, bool validate_only,
                                              const std::string& request_id,
                                              absl::FunctionRef<bool()> cancelled) {
  HPO_RETURN_IF_ERROR(ValidateStudy(spec));
  absl::MutexLock spec_lock(&spec_mutex_);
  const absl::StatusOr<StudyRuntime*> stored = FindStudy(spec.name);
  if (absl::IsDataLoss(stored.status())) return stored.status();
  if (validate_only) {
    if (!stored.ok() || !(*stored)->has_trials()) {
      HPO_RETURN_IF_ERROR(ChoosePriors(spec, cancelled).status());
      return !stored.ok();
    }
    HPO_RETURN_IF_ERROR(MergeStated(**stored, spec).status());
    return false;
  }
  const std::string body = StudyToJson(spec).dump();
  std::optional<std::string> answer;
  const auto read = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(answer, StudyStore(database).FindAnswer(request_id, "CreateStudy", body));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store_->Read(read));
  if (answer) return *answer == "created";
  return AddOrMerge(spec, request_id, body, cancelled);
}

absl::StatusOr<StudySpec> TrialScheduler::MergeStated(const StudyRuntime& known,
                                                      const StudySpec& spec) const {
  if (!known.has_trials()) return spec;
  bool unchanged = false;
  const auto read = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(unchanged, StudyStore(database).WasStated(known.id(), spec));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store_->Read(read));
  if (unchanged) return known.spec();
  return MergeChangedStudy(known.spec(), spec);
}

absl::StatusOr<bool> TrialScheduler::AddOrMerge(const StudySpec& spec,
                                                const std::string& request_id,
                                                const std::string& body,
                                                absl::FunctionRef<bool()> cancelled) {
  StudyRuntime* known = nullptr;
  for (StudyRuntime* study : Studies()) {
    if (study->name() == spec.name) known = study;
  }
  StudySpec taken = spec;
  if (known != nullptr) {
    HPO_ASSIGN_OR_RETURN(taken, MergeStated(*known, spec));
  }
  StudyRecord record{.spec = taken, .created = clock_.Now()};
  const bool starts = known == nullptr || !known->has_trials();
  std::vector<PriorStudy> priors;
  if (starts) {
    HPO_ASSIGN_OR_RETURN(record.priors, ChoosePriors(taken, cancelled));
    HPO_ASSIGN_OR_RETURN(priors, CollectPriors(taken, record.priors));
  }
  int64_t version = 0;
  const auto work = [&](Database& database) -> absl::Status {
    StudyStore studies(database);
    if (known == nullptr) {
      HPO_ASSIGN_OR_RETURN(record.id, studies.Insert(taken, record.created));
    } else if (!(known->spec() == taken)) {
      HPO_RETURN_IF_ERROR(studies.UpdateSpec(known->id(), taken));
    }
    if (known != nullptr) HPO_RETURN_IF_ERROR(studies.RecordStated(known->id(), spec));
    if (starts) {
      HPO_RETURN_IF_ERROR(
          studies.RecordPriors(known == nullptr ? record.id : known->id(), record.priors));
    }
    HPO_ASSIGN_OR_RETURN(version, studies.StudiesVersion());
    return studies.RecordAnswer(request_id, "CreateStudy", body,
                                known == nullptr ? "created" : "known", record.created);
  };
  HPO_RETURN_IF_ERROR(store_->Write(work));
  if (known == nullptr) {
    auto study = std::make_unique<StudyRuntime>(record, options_.factories);
    study->ReplaceSpec(taken, record.priors, std::move(priors));
    absl::MutexLock lock(&mutex_);
    studies_.push_back(std::move(study));
  } else if (known->has_trials()) {
    known->SetSpec(taken);
  } else {
    known->ReplaceSpec(taken, record.priors, std::move(priors));
  }
  absl::MutexLock lock(&mutex_);
  studies_version_ = version;
  ++generation_;
  return known == nullptr;
}

absl::StatusOr<std::vector<StudyPrior>> TrialScheduler::ChoosePriors(
    const StudySpec& spec, absl::FunctionRef<bool()> cancelled) const {
  std::vector<StudyPrior> chosen;
  for (const std::string& name : spec.warm_start) {
    const absl::StatusOr<StudyRuntime*> found = FindStudy(name);
    if (!found.ok()) return Annotate(found.status(), "warm_start");
    HPO_ASSIGN_OR_RETURN(StudyPrior prior,
                         ChoosePrior(spec, {(*found)->spec(), (*found)->history()}, cancelled));
    chosen.push_back(std::move(prior));
  }
  return chosen;
}

absl::StatusOr<std::vector<PriorStudy>> TrialScheduler::CollectPriors(
    const StudySpec& spec, const std::vector<StudyPrior>& chosen) const {
  std::vector<PriorStudy> priors;
  for (const StudyPrior& prior : chosen) {
    HPO_ASSIGN_OR_RETURN(const StudyRuntime* const earlier, FindStudy(prior.study));
    priors.push_back(ToPriorStudy(spec, {earlier->spec(), earlier->history()}, prior));
  }
  return priors;
}

absl::Status TrialScheduler::UpdateStudy(const std::string& name, const StudyUpdate& update,
                                         const std::string& request_id) {
  absl::MutexLock spec_lock(&spec_mutex_);
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, FindStudy(name));
  const std::string body = BodyOf(study->name(), update);
  StudySpec spec = study->spec();
  int64_t version = 0;
  const auto work = [&](Database& database) -> absl::Status {
    StudyStore studies(database);
    HPO_ASSIGN_OR_RETURN(const auto answer, studies.FindAnswer(request_id, "UpdateStudy", body));
    if (!answer) {
      HPO_ASSIGN_OR_RETURN(const TrialCounts counts,
                           TrialStore(database, study->id(), study->name()).Count());
      HPO_ASSIGN_OR_RETURN(spec,
                           Apply(update, spec, counts.Finished() + counts.queued + counts.running));
      HPO_RETURN_IF_ERROR(ValidateStudy(spec));
      HPO_RETURN_IF_ERROR(studies.UpdateSpec(study->id(), spec));
      HPO_RETURN_IF_ERROR(
          studies.RecordAnswer(request_id, "UpdateStudy", body, "updated", clock_.Now()));
    }
    HPO_ASSIGN_OR_RETURN(version, studies.StudiesVersion());
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(store_->Write(work));
  study->SetSpec(spec);
  absl::MutexLock lock(&mutex_);
  studies_version_ = version;
  ++generation_;
  return absl::OkStatus();
}

absl::StatusOr<StudyStatus> TrialScheduler::Status(const std::string& name) const {
  const absl::StatusOr<StudyRuntime*> found = FindStudy(name);
  if (absl::IsDataLoss(found.status())) {
    StudyStatus unreadable;
    unreadable.spec.name = name;
    unreadable.finished = true;  // nothing of it will ever run
    unreadable.unreadable = std::string(found.status().message());
    return unreadable;
  }
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, found);
  StudyStatus status{.spec = study->spec(), .finished = study->Finished(), .order = study->order()};
  status.unreadable = study->unreadable();
  // Read before the counts: a watch that goes on from here may repeat a change, never miss one.
  status.sequence = study->last_sequence();
  status.wall_clock_used = study->wall_clock_used();
  status.created = study->created();
  status.workers = WorkersOf(*study);
  status.waiting_for = WaitingFor(*study, status.workers);
  for (const StudyPrior& prior : study->priors()) {
    status.priors.push_back({.study = prior.study,
                             .num_trials = static_cast<int64_t>(prior.trials.size()),
                             .num_skipped = prior.num_skipped,
                             .why_skipped = prior.why_skipped});
  }
  const std::optional<TooManyFailures> failure = study->failure();
  const auto read = [&](const TrialStore& trials) -> absl::Status {
    if (failure) {
      HPO_ASSIGN_OR_RETURN(const TrialRecord last, trials.LoadTrial(failure->last));
      status.failure = DescribeFailure(*failure, last.trial);
    }
    HPO_ASSIGN_OR_RETURN(status.counts, trials.Count());
    HPO_ASSIGN_OR_RETURN(status.attributes, trials.LoadAttributes(TrialStore::kNoTrial));
    HPO_ASSIGN_OR_RETURN(const std::vector<Trial> best,
                         trials.ListBest(status.spec.objectives.front().direction, 1));
    if (!best.empty()) {
      status.best_trial = best.front().id.number;
      status.best_value = best.front().value;
      status.best_violation = best.front().violation;
    }
    if (!status.priors.empty()) {
      HPO_ASSIGN_OR_RETURN(status.last_proposal, trials.LoadLastSampler());
    }
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(ReadTrials(*study, read));
  return status;
}

std::vector<WorkerStatus> TrialScheduler::WorkersOf(const StudyRuntime& study) const {
  std::vector<WorkerStatus> statuses;
  for (const RegisteredWorker& worker : workers_.List()) {
    WorkerStatus status{.name = worker.facts.worker,
                        .device = worker.facts.device.name,
                        .capacity = worker.facts.capacity,
                        .alive = worker.alive,
                        .last_heartbeat = worker.last_heartbeat,
                        .notice = worker.Notice()};
    for (const StudyRuntime* candidate : Studies()) {
      for (const HeldLease& lease : candidate->leases()) {
        if (lease.worker == status.name) status.trial = TrialId{candidate->name(), lease.trial};
      }
    }
    const bool runs_here = status.trial && status.trial->study == study.name();
    // Workers of other studies are not this study's business.
    if (runs_here || CheckServes(study.spec(), worker.facts).ok()) {
      statuses.push_back(std::move(status));
    }
  }
  return statuses;
}

FinishedStudy TrialScheduler::EndOf(const StudyRuntime& study) {
  FinishedStudy end{
      .study = study.name(), .why = WhyHeld(study), .failed = study.failure().has_value()};
  if (end.why.empty()) end.why = study.termination();
  if (end.why.empty()) end.why = "its budget is used up";
  return end;
}

std::string TrialScheduler::WaitingFor(const StudyRuntime& study,
                                       const std::vector<WorkerStatus>& workers) const {
  if (std::string why = WhyHeld(study); !why.empty()) return why;
  if (study.Finished()) return study.termination();
  const auto num_alive = std::count_if(workers.begin(), workers.end(),
                                       [](const WorkerStatus& worker) { return worker.alive; });
  std::vector<std::string> idle;
  for (const WorkerStatus& worker : workers) {
    const std::string obstacle = worker.alive && !worker.trial ? study.obstacle(worker.name) : "";
    if (obstacle.empty()) continue;
    idle.push_back(absl::StrCat(num_alive > 1 ? worker.name + ": " : "", obstacle));
  }
  if (num_alive > 0) return absl::StrJoin(idle, "; ");
  if (!study.leases().empty()) return "";
  const std::vector<WorkerFacts> others = workers_.Alive();
  if (others.empty()) {
    return "no worker is there; run: hpo-worker --gpu 0 (or: hpo-worker --device cpu "
           "--memory-limit 2GiB)";
  }
  return std::string(CheckServes(study.spec(), others.back()).message());
}

}  // namespace hpo
