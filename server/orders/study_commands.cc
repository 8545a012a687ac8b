// Tested by tests/server/scheduler/studies_test.cc.
#include "server/orders/study_commands.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/study/study_edit.h"
#include "common/study/study_json.h"
#include "nlohmann/json.hpp"
#include "server/orders/prior_studies.h"
#include "server/storage/answer_store.h"
#include "server/storage/study_store.h"
#include "server/storage/trial_store.h"

namespace hpo::server {
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
    if (!Contains(*domain, Coerce(*domain, choice))) domain->choices.push_back(choice);
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

absl::StatusOr<bool> StudyCommands::CreateStudy(const StudySpec& spec, bool validate_only,
                                                const std::string& request_id,
                                                absl::FunctionRef<bool()> cancelled) {
  HPO_RETURN_IF_ERROR(ValidateStudy(spec));
  absl::MutexLock spec_lock(&state_.studies.change_mutex());
  const absl::StatusOr<StudyRuntime*> stored = state_.studies.Find(spec.name);
  if (absl::IsDataLoss(stored.status())) return stored.status();
  if (validate_only) {
    if (!stored.ok() || !(*stored)->has_trials()) {
      HPO_RETURN_IF_ERROR(ChoosePriors(state_.studies, spec, cancelled).status());
      return !stored.ok();
    }
    HPO_RETURN_IF_ERROR(MergeStated(**stored, spec).status());
    return false;
  }
  const std::string body = StudyToJson(spec).dump();
  std::optional<std::string> answer;
  const auto read = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(answer, AnswerStore(database).Find(request_id, "CreateStudy", body));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state_.store->Read(read));
  if (answer) return *answer == "created";
  return CreateOrMerge(spec, request_id, body, cancelled);
}

absl::StatusOr<StudySpec> StudyCommands::MergeStated(const StudyRuntime& known,
                                                     const StudySpec& spec) const {
  if (!known.has_trials()) return spec;
  StudySpec stated;
  const auto read = [&](Database& database) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(stated, StudyStore(database).LoadStated(known.id()));
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state_.store->Read(read));
  if (StudyToJson(stated) == StudyToJson(spec)) return known.spec();
  HPO_ASSIGN_OR_RETURN(StudySpec merged, MergeChangedStudy(known.spec(), spec));
  // The file says of the budget what it said before, so `hpo study extend` counts.
  if (stated.budget == spec.budget) merged.budget = known.spec().budget;
  return merged;
}

absl::StatusOr<bool> StudyCommands::CreateOrMerge(const StudySpec& spec,
                                                  const std::string& request_id,
                                                  const std::string& body,
                                                  absl::FunctionRef<bool()> cancelled) {
  StudyRuntime* known = nullptr;
  for (StudyRuntime* study : state_.studies.All()) {
    if (study->name() == spec.name) known = study;
  }
  StudySpec taken = spec;
  if (known != nullptr) {
    HPO_ASSIGN_OR_RETURN(taken, MergeStated(*known, spec));
  }
  StudyRecord record{.spec = taken, .created = state_.clock.Now()};
  const bool starts = known == nullptr || !known->has_trials();
  std::vector<sampler::PriorStudy> priors;
  if (starts) {
    HPO_ASSIGN_OR_RETURN(record.priors, ChoosePriors(state_.studies, taken, cancelled));
    HPO_ASSIGN_OR_RETURN(priors, CollectPriors(state_.studies, taken, record.priors, cancelled));
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
    return AnswerStore(database).Record(request_id, "CreateStudy", body,
                                        known == nullptr ? "created" : "known", record.created);
  };
  HPO_RETURN_IF_ERROR(state_.store->Write(work));
  if (known == nullptr) {
    auto study = std::make_unique<StudyRuntime>(record, state_.options.factories);
    study->ReplaceSpec(taken, record.priors, std::move(priors));
    state_.studies.Add(std::move(study), version);
    return true;
  }
  if (known->has_trials()) {
    known->SetSpec(taken);
  } else {
    known->ReplaceSpec(taken, record.priors, std::move(priors));
  }
  state_.studies.Changed(version);
  return false;
}

absl::Status StudyCommands::UpdateStudy(const std::string& name, const StudyUpdate& update,
                                        const std::string& request_id) {
  absl::MutexLock spec_lock(&state_.studies.change_mutex());
  HPO_ASSIGN_OR_RETURN(StudyRuntime* const study, state_.studies.Find(name));
  const std::string body = BodyOf(study->name(), update);
  StudySpec spec = study->spec();
  int64_t version = 0;
  const auto work = [&](Database& database) -> absl::Status {
    StudyStore studies(database);
    HPO_ASSIGN_OR_RETURN(const auto answer,
                         AnswerStore(database).Find(request_id, "UpdateStudy", body));
    if (!answer) {
      HPO_ASSIGN_OR_RETURN(const TrialCounts counts,
                           TrialStore(database, study->id(), study->name()).Count());
      HPO_ASSIGN_OR_RETURN(spec,
                           Apply(update, spec, counts.Finished() + counts.queued + counts.running));
      HPO_RETURN_IF_ERROR(ValidateStudy(spec));
      HPO_RETURN_IF_ERROR(studies.UpdateSpec(study->id(), spec));
      HPO_RETURN_IF_ERROR(AnswerStore(database).Record(request_id, "UpdateStudy", body, "updated",
                                                       state_.clock.Now()));
    }
    HPO_ASSIGN_OR_RETURN(version, studies.StudiesVersion());
    return absl::OkStatus();
  };
  HPO_RETURN_IF_ERROR(state_.store->Write(work));
  study->SetSpec(spec);
  state_.studies.Changed(version);
  return absl::OkStatus();
}

}  // namespace hpo::server
