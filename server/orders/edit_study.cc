// Tested by tests/server/scheduler/edit_study_test.cc.
#include "server/orders/edit_study.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/space/search_space_validation.h"
#include "common/study/study_edit.h"
#include "server/orders/prior_studies.h"
#include "server/storage/study_rows.h"
#include "server/storage/study_store.h"
#include "server/studies/study_loader.h"
#include "server/trials/typed_params.h"
#include "spdlog/spdlog.h"

namespace hpo::server {
namespace {

// Narrowings of the parameter are cut to its new domain; a default outside is none.
absl::Status SetDomain(const Domain& domain, Parameter& parameter, SearchSpace& space) {
  HPO_RETURN_IF_ERROR(CheckSameKind(parameter, domain));
  HPO_RETURN_IF_ERROR(Annotate(ValidateDomain(domain), absl::StrCat("parameter ", parameter.name)));
  parameter.domain = domain;
  if (parameter.default_value && !Contains(domain, *parameter.default_value)) {
    parameter.default_value.reset();
  }
  for (Narrowing& narrowing : space.narrowings) {
    if (narrowing.name != parameter.name) continue;
    std::optional<Domain> cut = Intersect(narrowing.domain, domain);
    if (!cut) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter ", parameter.name, ": expected a range that leaves something of ",
          FormatDomain(narrowing.domain), ", to which it is narrowed, got ", FormatDomain(domain)));
    }
    narrowing.domain = *std::move(cut);
  }
  return absl::OkStatus();
}

absl::StatusOr<StudySpec> Apply(const SpecChange& change, const StudySpec& stored) {
  if (const auto* file = std::get_if<StudySpec>(&change)) return EditedStudy(stored, *file);
  StudySpec edited = stored;
  for (const auto& [name, domain] : std::get<std::map<std::string, Domain>>(change)) {
    const auto parameter =
        std::find_if(edited.space.parameters.begin(), edited.space.parameters.end(),
                     [&name](const Parameter& candidate) { return candidate.name == name; });
    if (parameter == edited.space.parameters.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameter ", name, ": expected one of the study's parameters"));
    }
    HPO_RETURN_IF_ERROR(SetDomain(domain, *parameter, edited.space));
  }
  return edited;
}

EditResult Compare(const StudySpec& stored, const StudySpec& edited) {
  EditResult result;
  for (const Parameter& parameter : stored.space.parameters) {
    const Domain& now = edited.space.Find(parameter.name)->domain;
    if (now == parameter.domain) continue;
    result.before[parameter.name] = parameter.domain;
    result.after[parameter.name] = now;
  }
  return result;
}

std::string ChangesOf(const EditResult& result) {
  std::vector<std::string> changes;
  for (const auto& [name, domain] : result.before) {
    changes.push_back(absl::StrCat(name, " from ", FormatDomain(domain), " to ",
                                   FormatDomain(result.after.at(name))));
  }
  return absl::StrJoin(changes, ", ");
}

// What waits outside of `space` and has never run. What has begun goes on from where it is.
absl::StatusOr<std::vector<TrialRecord>> FindWaitingOutside(const StudyRows& rows,
                                                            const StudyRuntime& study,
                                                            const SearchSpace& space) {
  std::vector<TrialRecord> found;
  for (const QueuedTrial& queued : study.open.queue()) {
    if (IsWithin(space, queued.trial.params)) continue;
    HPO_ASSIGN_OR_RETURN(TrialRecord record, rows.trials.LoadTrial(queued.trial.id.number));
    const bool waits =
        record.trial.state == TrialState::kQueued && record.current_attempt == kNoAttempt;
    if (waits) found.push_back(std::move(record));
  }
  return found;
}

// The trials that CancelOutside would cancel.
absl::Status ListWaitingOutside(const SchedulerState& state, const StudyRuntime& study,
                                const SearchSpace& space, EditResult& result) {
  return state.store->Read([&](Database& database) -> absl::Status {
    const StudyRows rows(database, study.id(), study.name());
    HPO_ASSIGN_OR_RETURN(const std::vector<TrialRecord> waiting,
                         FindWaitingOutside(rows, study, space));
    for (const TrialRecord& record : waiting) result.cancelled.push_back(record.trial.id.number);
    return absl::OkStatus();
  });
}

absl::Status CancelOutside(Database& database, const StudyRuntime& study, const SearchSpace& space,
                           absl::Time now, EditResult& result) {
  StudyRows rows(database, study.id(), study.name());
  HPO_ASSIGN_OR_RETURN(std::vector<TrialRecord> waiting, FindWaitingOutside(rows, study, space));
  for (TrialRecord& record : waiting) {
    record.trial.state = TrialState::kCancelled;
    record.trial.outcome = Cancelled{.reason = "outside of the ranges that were edited"};
    record.trial.ended = now;
    HPO_RETURN_IF_ERROR(rows.trials.UpdateTrial(record));
    HPO_RETURN_IF_ERROR(rows.events.Append(record.trial.id.number, "finished", now).status());
    result.cancelled.push_back(record.trial.id.number);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EditResult> EditStudy(SchedulerState& state, const std::string& name,
                                     const SpecChange& change, bool validate_only) {
  absl::MutexLock spec_lock(&state.studies.change_mutex());
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state.studies.Find(name));
  const StudySpec stored = study->spec();
  HPO_ASSIGN_OR_RETURN(const StudySpec spec, Apply(change, stored));
  HPO_RETURN_IF_ERROR(ValidateStudy(spec));
  HPO_ASSIGN_OR_RETURN(std::vector<sampler::PriorStudy> priors,
                       CollectPriors(state.studies, spec, study->priors()));
  EditResult result = Compare(stored, spec);
  const sampler::History history = study->history();
  for (const auto& [number, trial] : history.trials()) {
    if (!IsWithin(spec.space, trial.params)) ++result.num_outside;
  }
  if (spec == stored) return result;
  if (validate_only) {
    HPO_RETURN_IF_ERROR(ListWaitingOutside(state, *study, spec.space, result));
    return result;
  }
  std::unique_ptr<StudyRuntime> fresh;
  int64_t version = 0;
  const auto work = [&](Database& database) -> absl::Status {
    StudyStore studies(database);
    HPO_RETURN_IF_ERROR(CancelOutside(database, *study, spec.space, state.clock.Now(), result));
    HPO_RETURN_IF_ERROR(studies.UpdateSpec(study->id(), spec));
    if (const auto* file = std::get_if<StudySpec>(&change)) {
      HPO_RETURN_IF_ERROR(studies.RecordStated(study->id(), *file));
    }
    HPO_RETURN_IF_ERROR(studies.AddWallClock(study->id(), study->open.wall_clock_to_store()));
    HPO_ASSIGN_OR_RETURN(version, studies.StudiesVersion());
    HPO_ASSIGN_OR_RETURN(fresh, ReloadStudy(state, database, study->id(), std::move(priors)));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(WriteAndRetire(
      state, *study, work, [&] { state.studies.Replace(*study, std::move(fresh), version); }));
  if (const auto& tell = state.options.on_trial_changed) {
    for (const TrialNumber number : result.cancelled) tell(TrialId{study->name(), number});
  }
  spdlog::info("study {} edited: {}", study->name(), ChangesOf(result));
  return result;
}

}  // namespace hpo::server
