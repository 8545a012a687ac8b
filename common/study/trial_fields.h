// The fields of trials' outcomes, plans and measurements, and the names of what is enumerated.
#pragma once

#include "common/base/fields/json_fields.h"
#include "common/study/trial.h"

namespace hpo {

template <>
struct NamesOf<TrialState> {
  static constexpr const char* kNames[] = {"QUEUED", "RUNNING", "COMPLETED",
                                           "PRUNED", "FAILED",  "CANCELLED"};
  static constexpr char kMeans[] = "a trial state";
};
template <>
struct NamesOf<PruneReason> {
  static constexpr const char* kNames[] = {"OUT_OF_MEMORY", "PREDICTED_OUT_OF_MEMORY",
                                           "HOST_OUT_OF_MEMORY", "PRUNER"};
  static constexpr char kMeans[] = "a prune reason";
};
template <>
struct NamesOf<Precision> {
  static constexpr const char* kNames[] = {"float32", "bfloat16", "float16"};
  static constexpr char kMeans[] = "a precision";
};
template <>
struct NamesOf<OomKind> {
  static constexpr const char* kNames[] = {"CONFIGURATION", "DIRTY_DEVICE", "FRAGMENTATION",
                                           "LATE_PEAK", "HOST"};
  static constexpr char kMeans[] = "a kind of out-of-memory";
};
template <>
struct NamesOf<FailureClass> {
  static constexpr const char* kNames[] = {
      "BAD_DATA",       "BAD_MODEL",   "BAD_CONFIGURATION", "DIVERGED",    "TRAINER_CRASHED",
      "TRAINER_KILLED", "DEVICE_LOST", "PROTOCOL",          "WORKER_LOST", "INTERNAL"};
  static constexpr char kMeans[] = "a failure class";
};
template <>
struct NamesOf<ReleaseReason> {
  static constexpr const char* kNames[] = {"PREEMPTED", "REJECTED", "UNHEALTHY"};
  static constexpr char kMeans[] = "a release reason";
};
template <>
struct NamesOf<AttemptState> {
  static constexpr const char* kNames[] = {"LEASED",   "SUSPECT", "FINISHED",
                                           "RELEASED", "LOST",    "SUPERSEDED"};
  static constexpr char kMeans[] = "an attempt state";
};

template <>
struct JsonForm<Attributes> {
  static nlohmann::json Write(const Attributes& attributes) { return AttributesToJson(attributes); }
  static absl::StatusOr<Attributes> Read(const nlohmann::json& json) {
    return AttributesFromJson(json);
  }
};
template <>
struct JsonForm<TrialNumber> {
  static nlohmann::json Write(TrialNumber number) { return number.value; }
  static absl::StatusOr<TrialNumber> Read(const nlohmann::json& json) {
    if (json.is_number_integer()) return TrialNumber{json.get<int64_t>()};
    return absl::InvalidArgumentError(
        absl::StrCat("expected a trial's number, got ", DescribeJson(json)));
  }
};

template <>
struct JsonForm<Metrics> {
  static nlohmann::json Write(const Metrics& metrics) { return MetricsToJson(metrics); }
  static absl::StatusOr<Metrics> Read(const nlohmann::json& json) { return MetricsFromJson(json); }
};

// Its sizes are checked, too.
template <>
struct JsonForm<MemoryPlan> {
  static absl::StatusOr<MemoryPlan> Read(const nlohmann::json& json) { return PlanFromJson(json); }
};

void VisitFields(Is<MemoryPlan> auto& plan, auto visit) {
  visit({"effective_batch"}, plan.effective_batch);
  visit({"micro_batch"}, plan.micro_batch);
  visit({"checkpointing", kAlways}, plan.checkpointing);
  visit({"precision", kAlways}, plan.precision);
}

void VisitFields(Is<Completed> auto& completed, auto visit) {
  visit({"metrics"}, completed.metrics);
  visit({"model_path", kAlways}, completed.model_path);
}

void VisitFields(Is<StoppedByPruner> auto& stopped, auto visit) {
  visit({"pruner", kAlways}, stopped.pruner);
  visit({"step"}, stopped.step);
  visit({"metrics", kAlways}, stopped.metrics);
}

void VisitFields(Is<OutOfMemory> auto& oom, auto visit) {
  visit({.key = "oom_kind", .presence = kAlways, .wire = "kind"}, oom.kind);
  visit({"predicted", kAlways}, oom.predicted);
  visit({"requested", kAlways}, oom.requested);
  visit({"peak", kAlways}, oom.peak);
  visit({"limit", kAlways}, oom.limit);
  visit({"needed", kAlways}, oom.needed);
  visit({"phase", kAlways}, oom.phase);
  visit({"step", kAlways}, oom.step);
  visit({"plan", kAlways}, oom.plan);
  visit({"error_message"}, oom.message);
  visit({"error_traceback", kAlways}, oom.traceback);
}

void VisitFields(Is<Failed> auto& failed, auto visit) {
  visit({.key = "class", .wire = "failure_class"}, failed.failure_class);
  visit({"message"}, failed.message);
}

void VisitFields(Is<Cancelled> auto& cancelled, auto visit) {
  visit({"reason", kAlways}, cancelled.reason);
}

inline constexpr NamedForm<TrialOutcome> kOutcomeForms[] = {
    {"completed", ReadForm<TrialOutcome, Completed>},
    {"stopped_by_pruner", ReadForm<TrialOutcome, StoppedByPruner>},
    {"out_of_memory", ReadForm<TrialOutcome, OutOfMemory>},
    {"failed", ReadForm<TrialOutcome, Failed>},
    {"cancelled", ReadForm<TrialOutcome, Cancelled>},
};

template <>
struct JsonForm<TrialOutcome> {
  static nlohmann::json Write(const TrialOutcome& outcome) { return OutcomeToJson(outcome); }
  static absl::StatusOr<TrialOutcome> Read(const nlohmann::json& json) {
    return OutcomeFromJson(json);
  }
};

void VisitFields(Is<MemoryReport> auto& report, auto visit) {
  visit({.key = "baseline", .presence = kAlways, .zero_is_known = true}, report.baseline);
  visit({"live_peak", kAlways}, report.live_peak);
  visit({"reserved_peak", kAlways}, report.reserved_peak);
  visit({"device_peak", kAlways}, report.device_peak);
  visit({"limit", kAlways}, report.limit);
  visit({"peak_phase", kAlways}, report.peak_phase);
  visit({"num_ooms", kAlways}, report.num_ooms);
  visit({"num_replans", kAlways}, report.num_replans);
  visit({.key = "growth", .presence = kAlways, .zero_is_known = true}, report.growth);
  visit({"growth_stage", kAlways}, report.growth_stage);
}

// What is unknown is left out.
void VisitFields(Is<MemoryRecord> auto& record, auto visit) {
  visit({"stage"}, record.stage);
  visit({"step", kAlways}, record.step);
  visit({.key = "allocated", .presence = kIfSaid, .zero_is_known = true}, record.allocated);
  visit({.key = "reserved", .presence = kIfSaid, .zero_is_known = true}, record.reserved);
  visit({.key = "free", .presence = kIfSaid, .zero_is_known = true}, record.free);
  visit({"total", kIfSaid}, record.total);
  visit({"peak", kIfSaid}, record.peak);
  visit({"resident", kIfSaid}, record.resident);
  visit({"predicted", kIfSaid}, record.predicted);
  visit({"predicted_reserved", kIfSaid}, record.predicted_reserved);
  visit({"needed", kIfSaid}, record.needed);
  visit({"plan", kIfSaid}, record.plan);
  visit({"growth", kIfSaid}, record.growth);
  visit({"growth_stage", kIfSaid}, record.growth_stage);
  visit({"sequence", kIfSaid}, record.sequence);
}

void VisitFields(Is<Measurement> auto& measurement, auto visit) {
  visit({"step"}, measurement.step);
  visit({"epoch", kAlways}, measurement.epoch);
  visit({"metrics"}, measurement.metrics);
}

// What is shown, exchanged and stored of attempts and trials.
void VisitFields(Is<Attempt> auto& attempt, auto visit) {
  visit({.key = "number", .in_row = false}, attempt.number.value);
  visit({"state"}, attempt.state);
  visit({"worker"}, attempt.worker);
  visit({.key = "capacity", .zero_is_known = true}, attempt.capacity);
  visit({"predicted"}, attempt.predicted);
  visit({"plan"}, attempt.plan);
  visit({"final_plan"}, attempt.final_plan);
  visit({"memory"}, attempt.memory);
  visit({.key = "memory_records", .in_row = false}, attempt.memory_records);
  visit({.key = "log_tail", .in_row = false}, attempt.log_tail);
  visit({"end_note"}, attempt.end_note);
  visit({"started"}, attempt.started);
  visit({"ended"}, attempt.ended);
}

// Without its attempts.
void VisitFields(Is<Trial> auto& trial, auto visit) {
  visit({.key = "study", .in_row = false}, trial.id.study);
  visit({.key = "number", .in_row = false}, trial.id.number);
  visit({"state"}, trial.state);
  visit({"value"}, trial.value);
  visit({"violation"}, trial.violation);
  visit({"params"}, trial.params);
  visit({"demonstration"}, trial.demonstration);
  visit({"origin"}, trial.origin);
  visit({.key = "budgeted", .wire = kNotSent}, trial.budgeted);
  visit({"admission"}, trial.admission);
  visit({"forced_micro_batch"}, trial.forced_micro_batch);
  visit({.key = "min_capacity", .zero_is_known = true}, trial.min_capacity);
  visit({"outcome"}, trial.outcome);
  visit({.key = "last_measurement", .in_row = false}, trial.last_measurement);
  visit({"created"}, trial.created);
  visit({"started"}, trial.started);
  visit({"ended"}, trial.ended);
  visit({.key = "attributes", .in_row = false}, trial.attributes);
}

}  // namespace hpo
