#include "cli/render/json.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "cli/render/wording.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

using Json = nlohmann::ordered_json;

Json TimeJson(absl::Time time) {
  if (time == absl::InfinitePast()) return nullptr;
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Bytes that are 0 where they are unknown.
Json SizeJson(Bytes size) { return size.count > 0 ? Json(size.count) : Json(nullptr); }

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

Json PlanJson(const MemoryPlan& plan) {
  return {{"effective_batch", plan.effective_batch},
          {"micro_batch", plan.micro_batch},
          {"checkpointing", plan.checkpointing},
          {"precision", std::string(Name(plan.precision))}};
}

Json MeasurementJson(const Measurement& measurement) {
  return {
      {"step", measurement.step}, {"epoch", measurement.epoch}, {"metrics", measurement.metrics}};
}

Json ReportJson(const MemoryReport& report) {
  return {{"baseline_bytes", report.baseline.count},
          {"live_peak_bytes", SizeJson(report.live_peak)},
          {"reserved_peak_bytes", SizeJson(report.reserved_peak)},
          {"device_peak_bytes", SizeJson(report.device_peak)},
          {"limit_bytes", SizeJson(report.limit)},
          {"peak_phase", report.peak_phase},
          {"num_ooms", report.num_ooms},
          {"num_replans", report.num_replans},
          {"growth_bytes", report.growth.count},
          {"growth_stage", report.growth_stage}};
}

Json RecordJson(const MemoryRecord& record, const std::optional<Bytes>& change) {
  return {{"stage", record.stage},
          {"step", record.step},
          {"allocated_bytes", record.allocated.count},
          {"change_bytes", change ? Json(change->count) : Json(nullptr)},
          {"reserved_bytes", record.reserved.count},
          {"free_bytes", record.free.count},
          {"total_bytes", SizeJson(record.total)},
          {"peak_bytes", SizeJson(record.peak)},
          {"resident_bytes", SizeJson(record.resident)},
          {"predicted_bytes", SizeJson(record.predicted)},
          {"predicted_reserved_bytes", SizeJson(record.predicted_reserved)},
          {"needed_bytes", SizeJson(record.needed)},
          {"plan", record.plan ? PlanJson(*record.plan) : Json(nullptr)},
          {"growth_bytes", SizeJson(record.growth)},
          {"growth_stage", record.growth_stage}};
}

Json RecordsJson(const Attempt& attempt) {
  Json json = Json::array();
  for (size_t i = 0; i < attempt.memory_records.size(); ++i) {
    json.push_back(RecordJson(attempt.memory_records[i], AllocatedChange(attempt, i)));
  }
  return json;
}

Json AttemptJson(const Attempt& attempt) {
  return {{"number", attempt.number.value},
          {"state", std::string(Name(attempt.state))},
          {"worker", attempt.worker},
          {"capacity_bytes", attempt.capacity.count},
          {"predicted_bytes", SizeJson(attempt.predicted)},
          {"plan", PlanJson(attempt.plan)},
          {"final_plan", attempt.final_plan ? PlanJson(*attempt.final_plan) : Json(nullptr)},
          {"memory", attempt.memory ? ReportJson(*attempt.memory) : Json(nullptr)},
          {"stages", RecordsJson(attempt)},
          {"end_note", attempt.end_note},
          {"started", TimeJson(attempt.started)},
          {"ended", TimeJson(attempt.ended)}};
}

Json ParamsJson(const ParamMap& params) {
  Json json = Json::object();
  for (const auto& [name, value] : params) {
    json[name] = std::visit([](const auto& held) { return Json(held); }, value);
  }
  return json;
}

Json ChoicesJson(const std::vector<ParamValue>& choices) {
  Json json = Json::array();
  for (const ParamValue& choice : choices) {
    json.push_back(std::visit([](const auto& held) { return Json(held); }, choice));
  }
  return json;
}

Json JsonOf(const FloatDomain& domain) {
  return {{"type", "float"},
          {"low", domain.low},
          {"high", domain.high},
          {"step", OrNull(domain.step)},
          {"log", domain.log}};
}

Json JsonOf(const IntDomain& domain) {
  return {{"type", "int"},
          {"low", domain.low},
          {"high", domain.high},
          {"step", domain.step},
          {"log", domain.log}};
}

Json JsonOf(const CategoricalDomain& domain) {
  return {{"type", "categorical"}, {"choices", ChoicesJson(domain.choices)}};
}

Json SpaceJson(const SearchSpace& space) {
  Json json = Json::object();
  for (const Parameter& parameter : space.parameters) {
    json[parameter.name] = DomainJson(parameter.domain);
  }
  return json;
}

Json OutcomeJson(const Completed& completed) {
  return {
      {"kind", "completed"}, {"metrics", completed.metrics}, {"model_path", completed.model_path}};
}

Json OutcomeJson(const StoppedByPruner& stopped) {
  return {{"kind", "stopped_by_pruner"},
          {"pruner", stopped.pruner},
          {"step", stopped.step},
          {"metrics", stopped.metrics}};
}

Json OutcomeJson(const OutOfMemory& oom) {
  return {{"kind", "out_of_memory"},
          {"oom_kind", std::string(Name(oom.kind))},
          {"predicted", oom.predicted},
          {"requested_bytes", SizeJson(oom.requested)},
          {"peak_bytes", SizeJson(oom.peak)},
          {"limit_bytes", SizeJson(oom.limit)},
          {"needed_bytes", SizeJson(oom.needed)},
          {"phase", oom.phase},
          {"step", oom.step},
          {"plan", PlanJson(oom.plan)},
          {"error_message", oom.message},
          {"error_traceback", oom.traceback}};
}

Json OutcomeJson(const Failed& failed) {
  return {{"kind", "failed"},
          {"failure_class", std::string(Name(failed.failure_class))},
          {"message", failed.message}};
}

Json OutcomeJson(const Cancelled& cancelled) {
  return {{"kind", "cancelled"}, {"reason", cancelled.reason}};
}

Json OutcomeOrNull(const Trial& trial) {
  if (!trial.outcome) return nullptr;
  Json json = std::visit([](const auto& held) { return OutcomeJson(held); }, *trial.outcome);
  if (std::holds_alternative<OutOfMemory>(*trial.outcome)) {
    json["oom_config"] = OomConfig(trial.params);
  }
  return json;
}

Json ConstraintsJson(const std::vector<MetricConstraint>& constraints) {
  Json json = Json::array();
  for (const MetricConstraint& constraint : constraints) {
    json.push_back({{"metric", constraint.metric},
                    {"at_least", OrNull(constraint.at_least)},
                    {"at_most", OrNull(constraint.at_most)}});
  }
  return json;
}

Json RegretBoundJson(const Budget& budget) {
  if (!budget.regret_bound) return nullptr;
  return budget.regret_bound->gap ? Json(*budget.regret_bound->gap) : Json("auto");
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
  const auto reason = trial.outcome ? PruneReasonOf(*trial.outcome) : std::nullopt;
  return reason ? Json(std::string(Name(*reason))) : Json(nullptr);
}

}  // namespace

Json DomainJson(const Domain& domain) {
  return std::visit([](const auto& held) { return JsonOf(held); }, domain);
}

Json StudyJson(const StudyStatus& study) {
  Json objectives = Json::array();
  for (const Objective& objective : study.spec.objectives) {
    const bool minimize = objective.direction == Direction::kMinimize;
    objectives.push_back(
        {{"metric", objective.metric}, {"direction", minimize ? "minimize" : "maximize"}});
  }
  Json workers = Json::array();
  for (const WorkerStatus& worker : study.workers) workers.push_back(WorkerJson(worker));
  Json priors = Json::array();
  for (const PriorStatus& prior : study.priors) {
    priors.push_back({{"study", prior.study},
                      {"trials", prior.num_trials},
                      {"skipped", prior.num_skipped},
                      {"why_skipped", prior.why_skipped}});
  }
  const Budget& budget = study.spec.budget;
  const auto seconds = [](const std::optional<absl::Duration>& limit) {
    return limit ? Json(absl::ToDoubleSeconds(*limit)) : Json(nullptr);
  };
  Json json = {
      {"name", study.spec.name},
      {"state", study.finished ? "FINISHED" : "ACTIVE"},
      {"objectives", std::move(objectives)},
      {"constraints", ConstraintsJson(study.spec.constraints)},
      {"budget",
       {{"trials", OrNull(budget.trials)},
        {"wall_clock_seconds", seconds(budget.wall_clock)},
        {"trial_wall_clock_seconds", seconds(budget.trial_wall_clock)},
        {"no_progress", OrNull(budget.no_progress)},
        {"regret_bound", RegretBoundJson(budget)},
        {"target", OrNull(budget.target)},
        {"failures_in_a_row", budget.failures_in_a_row},
        {"failed_share", OrNull(budget.failed_share)}}},
      {"order", std::string(Name(study.order))},
      {"failure", study.failure.empty() ? Json(nullptr) : Json(study.failure)},
      {"counts", CountsJson(study.counts)},
      {"best_trial", study.best_trial ? Json(study.best_trial->value) : Json(nullptr)},
      {"best_value", OrNull(study.best_value)},
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
  Json json = {
      {"study", trial.id.study},
      {"number", trial.id.number.value},
      {"state", std::string(Name(trial.state))},
      {"prune_reason", PruneReasonJson(trial)},
      {"value", OrNull(trial.value)},
      {"feasible", completed ? Json(trial.violation == 0.0) : Json(nullptr)},
      {"violation", std::isfinite(trial.violation) ? Json(trial.violation) : Json(nullptr)},
      {"params", ParamsJson(trial.params)},
      {"demonstration", trial.demonstration},
      {"origin", trial.origin},
      {"budgeted", trial.budgeted},
      {"admission", trial.admission},
      {"forced_micro_batch", trial.forced_micro_batch},
      {"min_capacity_bytes", trial.min_capacity.count},
      {"outcome", OutcomeOrNull(trial)},
      {"last_measurement",
       trial.last_measurement ? MeasurementJson(*trial.last_measurement) : Json(nullptr)},
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
  json["measurements"] = Json::array();
  for (const Measurement& measurement : view.measurements) {
    json["measurements"].push_back(MeasurementJson(measurement));
  }
  return json;
}

void PrintJson(const Json& json, std::ostream& out) { out << json.dump(/*indent=*/2) << "\n"; }

Json MemoryJson(const MemoryVerdict& verdict) {
  const MemoryEstimate& estimate = verdict.estimate;
  return {{"fits", verdict.fits},
          {"usable_bytes", verdict.usable.count},
          {"plan", PlanJson(verdict.plan)},
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
