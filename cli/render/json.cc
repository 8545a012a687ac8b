#include "cli/render/json.h"

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "cli/render/wording.h"
#include "common/study/study_fields.h"
#include "common/study/trial_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json Shown(const T& value) {
  return ToJson<Json>(value);
}

Json TimeJson(absl::Time time) {
  if (time == absl::InfinitePast()) return nullptr;
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

Json CountsJson(const TrialCounts& counts) {
  return {{"queued", counts.queued},
          {"running", counts.running},
          {"completed", counts.completed},
          {"pruned", counts.pruned},
          {"failed", counts.failed},
          {"cancelled", counts.cancelled},
          {"oom_met", counts.oom_met},
          {"oom_predicted", counts.oom_predicted},
          {"oom_recovered", counts.oom_recovered},
          {"demonstration", counts.demonstration},
          {"imported", counts.imported},
          {"infeasible", counts.infeasible}};
}

Json WorkerJson(const WorkerStatus& worker) {
  return {{"name", worker.name},
          {"device", worker.device},
          {"capacity_bytes", worker.capacity.count},
          {"alive", worker.alive},
          {"study", worker.trial ? Json(worker.trial->study) : Json(nullptr)},
          {"trial", worker.trial ? Json(worker.trial->number.value) : Json(nullptr)},
          {"last_heartbeat", TimeJson(worker.last_heartbeat)},
          {"notice", worker.notice}};
}

// With what the allocated bytes grew by since the record before.
Json RecordJson(const Attempt& attempt, size_t index) {
  Json json = Json::object();
  VisitFields(attempt.memory_records[index], [&](const Field& field, const auto& member) {
    const absl::string_view key = field.key;
    if (key == "sequence") return;
    AddField<MemoryRecord>(field, member, json);
    if (key == "allocated") json["change_bytes"] = Shown(AllocatedChange(attempt, index));
  });
  return json;
}

Json RecordsJson(const Attempt& attempt) {
  Json json = Json::array();
  for (size_t i = 0; i < attempt.memory_records.size(); ++i) {
    json.push_back(RecordJson(attempt, i));
  }
  return json;
}

Json AttemptJson(const Attempt& attempt) {
  return {{"number", attempt.number.value},
          {"state", Shown(attempt.state)},
          {"worker", attempt.worker},
          {"capacity_bytes", attempt.capacity.count},
          {"predicted_bytes",
           attempt.predicted > Bytes{} ? Json(attempt.predicted.count) : Json(nullptr)},
          {"plan", Shown(attempt.plan)},
          {"final_plan", Shown(attempt.final_plan)},
          {"memory", Shown(attempt.memory)},
          {"stages", RecordsJson(attempt)},
          {"end_note", attempt.end_note},
          {"started", TimeJson(attempt.started)},
          {"ended", TimeJson(attempt.ended)}};
}

Json SpaceJson(const SearchSpace& space) {
  Json json = Json::object();
  for (const Parameter& parameter : space.parameters) {
    json[parameter.name] = DomainJson(parameter.domain);
  }
  return json;
}

Json OutcomeOrNull(const Trial& trial) {
  if (!trial.outcome) return nullptr;
  if (const auto* failed = std::get_if<Failed>(&*trial.outcome)) {
    return {{"kind", "failed"},
            {"failure_class", Shown(failed->failure_class)},
            {"message", failed->message}};
  }
  Json json = FormToJson<Json>(*trial.outcome, "kind", kOutcomeForms);
  if (std::holds_alternative<OutOfMemory>(*trial.outcome)) {
    json["oom_config"] = OomConfig(trial.params);
  }
  return json;
}

Json FrontJson(const StudyStatus& study) {
  Json front = Json::array();
  for (const FrontTrial& trial : study.front) {
    Json values = Json::object();
    for (size_t i = 0; i < trial.values.size(); ++i) {
      values[study.spec.objectives[i].metric] = trial.values[i];
    }
    front.push_back({{"trial", trial.number.value}, {"values", std::move(values)}});
  }
  return front;
}

void AddAttributes(const Attributes& attributes, Json& json) {
  const std::string note = NoteOf(attributes);
  json["note"] = note.empty() ? Json(nullptr) : Json(note);
  json["tags"] = TagsOf(attributes);
  json["attributes"] = Json(AttributesToJson(UsersOwn(attributes)));
}

Json PruneReasonJson(const Trial& trial) {
  return trial.outcome ? Shown(PruneReasonOf(*trial.outcome)) : Json(nullptr);
}

}  // namespace

Json DomainJson(const Domain& domain) {
  constexpr const char* kTypes[] = {"float", "int", "categorical"};
  Json json = {{"type", kTypes[domain.index()]}};
  std::visit([&](const auto& held) { AddFields(held, json); }, domain);
  return json;
}

Json StudyJson(const StudyStatus& study) {
  Json workers = Json::array();
  for (const WorkerStatus& worker : study.workers) workers.push_back(WorkerJson(worker));
  Json priors = Json::array();
  for (const PriorStatus& prior : study.priors) {
    priors.push_back({{"study", prior.study},
                      {"trials", prior.num_trials},
                      {"skipped", prior.num_skipped},
                      {"why_skipped", prior.why_skipped}});
  }
  Json json = {
      {"name", study.spec.name},
      {"state", study.finished ? "FINISHED" : "ACTIVE"},
      {"objectives", Shown(study.spec.objectives)},
      {"constraints", Shown(study.spec.constraints)},
      {"budget", Shown(study.spec.budget)},
      {"order", std::string(Name(study.order))},
      {"failure", study.failure.empty() ? Json(nullptr) : Json(study.failure)},
      {"counts", CountsJson(study.counts)},
      {"best_trial", study.best_trial ? Json(study.best_trial->value) : Json(nullptr)},
      {"best_value", Shown(study.best_value)},
      {"best_feasible", study.best_trial ? Json(study.best_violation == 0.0) : Json(nullptr)},
      {"front", FrontJson(study)},
      {"wall_clock_used_seconds", absl::ToDoubleSeconds(study.wall_clock_used)},
      {"workers", std::move(workers)},
      {"waiting_for", study.waiting_for},
      {"warm_start", std::move(priors)},
      {"last_proposal", study.last_proposal},
      {"unreadable", study.unreadable},
      {"parameters", SpaceJson(study.spec.space)},
      {"train", study.spec.trainer.train},
      {"validation", study.spec.trainer.validation},
      {"sampler", study.spec.sampler.type},
      {"pruner", study.spec.pruner.type},
      {"seed", study.spec.sampler.seed},
      {"created", TimeJson(study.created)}};
  AddAttributes(study.attributes, json);
  return json;
}

Json TrialJson(const Trial& trial) {
  const bool completed = trial.state == TrialState::kCompleted;
  Json json = {{"study", trial.id.study},
               {"number", trial.id.number.value},
               {"state", Shown(trial.state)},
               {"prune_reason", PruneReasonJson(trial)},
               {"value", Shown(trial.value)},
               {"feasible", completed ? Json(trial.violation == 0.0) : Json(nullptr)},
               {"violation", Shown(trial.violation)},
               {"params", Shown(trial.params)},
               {"demonstration", trial.demonstration},
               {"origin", trial.origin},
               {"budgeted", trial.budgeted},
               {"admission", trial.admission},
               {"forced_micro_batch", trial.forced_micro_batch},
               {"min_capacity_bytes", trial.min_capacity.count},
               {"outcome", OutcomeOrNull(trial)},
               {"last_measurement", Shown(trial.last_measurement)},
               {"created", TimeJson(trial.created)},
               {"started", TimeJson(trial.started)},
               {"ended", TimeJson(trial.ended)}};
  AddAttributes(trial.attributes, json);
  const auto retry = trial.attributes.find(kRetryOfKey);
  json["retry_of"] = retry == trial.attributes.end() ? Json(nullptr) : Json::parse(retry->second);
  return json;
}

Json TrialJson(const TrialView& view) {
  Json json = TrialJson(view.trial);
  json["sampler"] = view.sampler;
  json["attempts"] = Json::array();
  for (const Attempt& attempt : view.trial.attempts) {
    json["attempts"].push_back(AttemptJson(attempt));
  }
  json["measurements"] = Shown(view.measurements);
  return json;
}

void PrintJson(const Json& json, std::ostream& out) { out << json.dump(/*indent=*/2) << "\n"; }

Json MemoryJson(const MemoryVerdict& verdict) {
  const MemoryEstimate& estimate = verdict.estimate;
  return {{"fits", verdict.fits},
          {"usable_bytes", verdict.usable.count},
          {"plan", Shown(verdict.plan)},
          {"weights_bytes", estimate.weights.count},
          {"gradients_bytes", estimate.gradients.count},
          {"optimizer_bytes", estimate.optimizer.count},
          {"activations_bytes", estimate.activations.count},
          {"head_bytes", estimate.head.count},
          {"workspaces_bytes", estimate.workspaces.count},
          {"base_bytes", estimate.base.count},
          {"live_peak_bytes", estimate.live_peak.count},
          {"reserved_peak_bytes", estimate.reserved_peak.count},
          {"needed_limit_bytes", estimate.needed_limit.count},
          {"peak_phase", estimate.peak_phase},
          {"explanation", verdict.explanation}};
}

}  // namespace hpo
