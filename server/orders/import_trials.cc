// Tested by tests/server/scheduler/import_test.cc.
#include "server/orders/import_trials.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "server/placement/capability.h"
#include "server/storage/records.h"
#include "server/studies/trial_writer.h"
#include "server/trials/outcome_value.h"
#include "server/trials/typed_params.h"

namespace hpo::server {
namespace {

// Who ran the one attempt of an imported trial.
constexpr char kElsewhere[] = "imported";
constexpr AttemptNumber kTheAttempt{1};

// Other writers wait for an import: one that nobody waits for ends.
absl::Status CheckCaller(const TrialImport& import) {
  if (!import.cancelled || !import.cancelled()) return absl::OkStatus();
  return absl::CancelledError("the caller of the import has left; nothing was imported");
}

// A completed trial has every objective: a sampler would take a missing one for the worst.
absl::Status CheckOutcome(const StudySpec& spec, const TrialOutcome& outcome) {
  const auto* completed = std::get_if<Completed>(&outcome);
  if (completed == nullptr) return absl::OkStatus();
  for (const Objective& objective : spec.objectives) {
    if (completed->metrics.contains(objective.metric)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("metrics: expected ", objective.metric, ", an objective, got none"));
  }
  return absl::OkStatus();
}

TrialRecord RecordOf(const StudyRuntime& study, const ImportedTrial& imported, TrialNumber number,
                     bool budgeted, absl::Time now) {
  TrialRecord record{.study_id = study.id()};
  Trial& trial = record.trial;
  trial.id = TrialId{study.name(), number};
  trial.state = TrialState::kRunning;
  trial.params = imported.params;
  trial.demonstration = imported.demonstration;
  trial.origin = imported.origin;
  trial.budgeted = budgeted;
  trial.created = now;
  return record;
}

// A trial has a duration of zero if the other program does not know when it began or ended, or if
// its clock went back meanwhile (Optuna's times are local ones).
ImportedTrial WithTimes(ImportedTrial trial, absl::Time now) {
  const bool began = trial.started != absl::InfinitePast();
  const bool ended = trial.ended != absl::InfinitePast();
  if (!ended) trial.ended = began ? trial.started : now;
  if (!began) trial.started = trial.ended;
  trial.ended = std::max(trial.ended, trial.started);
  return trial;
}

AttemptRecord AttemptOf(const TrialRecord& record, const ImportedTrial& imported) {
  AttemptRecord attempt{.study_id = record.study_id, .trial = record.trial.id.number};
  attempt.attempt.number = kTheAttempt;
  attempt.attempt.state = AttemptState::kFinished;
  attempt.attempt.worker = kElsewhere;
  attempt.attempt.started = imported.started;
  attempt.attempt.ended = imported.ended;
  attempt.outcome = imported.outcome;
  return attempt;
}

absl::Status Insert(TrialTransaction& transaction, const ImportedTrial& imported,
                    const StudySpec& spec, TrialRecord record) {
  HPO_RETURN_IF_ERROR(transaction.trials.InsertTrial(record));
  const AttemptRecord attempt = AttemptOf(record, imported);
  const TrialNumber number = record.trial.id.number;
  HPO_RETURN_IF_ERROR(transaction.attempts.InsertAttempt(attempt));
  HPO_RETURN_IF_ERROR(transaction.attempts.UpdateAttempt(attempt));
  HPO_RETURN_IF_ERROR(
      transaction.attempts.InsertMeasurements(number, kTheAttempt, imported.measurements).status());
  SetOutcome(spec, imported.outcome, record.trial);
  record.trial.started = imported.started;
  record.trial.ended = imported.ended;
  record.current_attempt = record.result_attempt = kTheAttempt;
  HPO_RETURN_IF_ERROR(transaction.trials.UpdateTrial(record));
  transaction.Changed(number, "finished");
  if (imported.attributes.empty()) return absl::OkStatus();
  return transaction.attributes.Replace(number, imported.attributes);
}

//   AlreadyExists  `known` is another trial than `imported`
absl::Status CheckSame(const TrialRecord& known, const ImportedTrial& imported) {
  const bool same = known.trial.params == imported.params && known.trial.outcome.has_value() &&
                    OutcomeToJson(*known.trial.outcome) == OutcomeToJson(imported.outcome);
  if (same) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("expected the parameters and the outcome that it was imported with as trial #",
                   known.trial.id.number.value, ", got others"));
}

// The trials, with the types that the space has.
absl::StatusOr<std::vector<ImportedTrial>> CheckImported(const SchedulerState& state,
                                                         const StudySpec& spec,
                                                         const TrialImport& import) {
  SearchSpace space = spec.space;
  space.model_facts = ModelFactsOf(spec, state.workers.Alive());
  std::vector<ImportedTrial> checked = import.trials;
  for (ImportedTrial& trial : checked) {
    HPO_RETURN_IF_ERROR(CheckCaller(import));
    const auto check = [&]() -> absl::Status {
      HPO_ASSIGN_OR_RETURN(trial.params, TypedParams(space, trial.params));
      HPO_RETURN_IF_ERROR(ValidateParams(space, trial.params));
      HPO_ASSIGN_OR_RETURN(trial.attributes, Changed({}, Adding(trial.attributes)));
      return CheckOutcome(spec, trial.outcome);
    };
    HPO_RETURN_IF_ERROR(Annotate(check(), trial.origin));
  }
  return checked;
}

}  // namespace

absl::StatusOr<ImportResult> ImportTrials(SchedulerState& state, const TrialImport& import) {
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state.studies.Find(import.study));
  const StudySpec spec = study->spec();
  HPO_ASSIGN_OR_RETURN(const std::vector<ImportedTrial> trials, CheckImported(state, spec, import));
  absl::MutexLock lock(&study->sampler.propose_mutex());
  ImportResult result{.study = study->name()};
  const auto work = [&](TrialTransaction& transaction) -> absl::Status {
    int64_t next = study->next_number().value;
    for (const ImportedTrial& trial : trials) {
      HPO_RETURN_IF_ERROR(CheckCaller(import));
      HPO_ASSIGN_OR_RETURN(const auto known, transaction.trials.FindByOrigin(trial.origin));
      if (known.has_value()) {
        HPO_RETURN_IF_ERROR(Annotate(CheckSame(*known, trial), trial.origin));
        ++result.num_known;
        continue;
      }
      const TrialRecord record = RecordOf(*study, trial, TrialNumber{next++},
                                          import.count_against_budget, transaction.now);
      HPO_RETURN_IF_ERROR(Insert(transaction, WithTimes(trial, transaction.now), spec, record));
      ++result.num_added;
    }
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state.writer.Write(*study, work));
  return result;
}

}  // namespace hpo::server
