#include "common/study/trial.h"

#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

// The names of an enum's values, in the order of its declaration.
template <typename Enum>
struct NamesOf;
template <>
struct NamesOf<TrialState> {
  static constexpr std::array<const char*, 6> kNames = {"QUEUED", "RUNNING", "COMPLETED",
                                                        "PRUNED", "FAILED",  "CANCELLED"};
};
template <>
struct NamesOf<PruneReason> {
  static constexpr std::array<const char*, 4> kNames = {"OUT_OF_MEMORY", "PREDICTED_OUT_OF_MEMORY",
                                                        "HOST_OUT_OF_MEMORY", "PRUNER"};
};
template <>
struct NamesOf<Precision> {
  static constexpr std::array<const char*, 3> kNames = {"float32", "bfloat16", "float16"};
};
template <>
struct NamesOf<OomKind> {
  static constexpr std::array<const char*, 5> kNames = {"CONFIGURATION", "DIRTY_DEVICE",
                                                        "FRAGMENTATION", "LATE_PEAK", "HOST"};
};
template <>
struct NamesOf<FailureClass> {
  static constexpr std::array<const char*, 10> kNames = {
      "BAD_DATA",       "BAD_MODEL",   "BAD_CONFIGURATION", "DIVERGED",    "TRAINER_CRASHED",
      "TRAINER_KILLED", "DEVICE_LOST", "PROTOCOL",          "WORKER_LOST", "INTERNAL"};
};
template <>
struct NamesOf<ReleaseReason> {
  static constexpr std::array<const char*, 3> kNames = {"PREEMPTED", "REJECTED", "UNHEALTHY"};
};
template <>
struct NamesOf<AttemptState> {
  static constexpr std::array<const char*, 6> kNames = {"LEASED",   "SUSPECT", "FINISHED",
                                                        "RELEASED", "LOST",    "SUPERSEDED"};
};

template <typename Enum>
absl::string_view NameIn(Enum value) {
  return NamesOf<Enum>::kNames.at(static_cast<size_t>(value));
}

// A JSON string that is one of the enum's names.
template <typename Enum>
absl::StatusOr<Enum> EnumFromJson(const nlohmann::json& json) {
  if (json.is_string()) {
    if (const auto value = ParseName<Enum>(json.get<std::string>())) return *value;
  }
  return absl::InvalidArgumentError(absl::StrCat("expected one of ",
                                                 absl::StrJoin(NamesOf<Enum>::kNames, ", "),
                                                 ", got ", DescribeJson(json)));
}

struct OutcomeWriter {
  nlohmann::json operator()(const Completed& completed) const {
    return {{"kind", "completed"},
            {"metrics", MetricsToJson(completed.metrics)},
            {"model_path", completed.model_path}};
  }
  nlohmann::json operator()(const StoppedByPruner& stopped) const {
    return {{"kind", "stopped_by_pruner"},
            {"pruner", stopped.pruner},
            {"step", stopped.step},
            {"metrics", MetricsToJson(stopped.metrics)}};
  }
  nlohmann::json operator()(const OutOfMemory& oom) const {
    return {{"kind", "out_of_memory"},
            {"oom_kind", std::string(Name(oom.kind))},
            {"predicted", oom.predicted},
            {"requested_bytes", oom.requested.count},
            {"peak_bytes", oom.peak.count},
            {"limit_bytes", oom.limit.count},
            {"needed_bytes", oom.needed.count},
            {"phase", oom.phase},
            {"step", oom.step},
            {"plan", PlanToJson(oom.plan)},
            {"error_message", oom.message},
            {"error_traceback", oom.traceback}};
  }
  nlohmann::json operator()(const Failed& failed) const {
    return {{"kind", "failed"},
            {"class", std::string(Name(failed.failure_class))},
            {"message", failed.message}};
  }
  nlohmann::json operator()(const Cancelled& cancelled) const {
    return {{"kind", "cancelled"}, {"reason", cancelled.reason}};
  }
};

TrialOutcome ReadCompleted(JsonReader& reader) {
  Completed completed;
  reader.Required("metrics", completed.metrics);
  reader.Optional("model_path", completed.model_path);
  return completed;
}

TrialOutcome ReadStoppedByPruner(JsonReader& reader) {
  StoppedByPruner stopped;
  reader.Optional("pruner", stopped.pruner);
  reader.Required("step", stopped.step);
  reader.Optional("metrics", stopped.metrics);
  return stopped;
}

TrialOutcome ReadOutOfMemory(JsonReader& reader) {
  OutOfMemory oom;
  reader.OptionalWith("oom_kind", oom.kind, EnumFromJson<OomKind>);
  reader.Optional("predicted", oom.predicted);
  reader.Optional("requested_bytes", oom.requested);
  reader.Optional("peak_bytes", oom.peak);
  reader.Optional("limit_bytes", oom.limit);
  reader.Optional("needed_bytes", oom.needed);
  reader.Optional("phase", oom.phase);
  reader.Optional("step", oom.step);
  reader.OptionalWith("plan", oom.plan, PlanFromJson);
  reader.Required("error_message", oom.message);
  reader.Optional("error_traceback", oom.traceback);
  return oom;
}

TrialOutcome ReadFailed(JsonReader& reader) {
  Failed failed;
  reader.RequiredWith("class", failed.failure_class, EnumFromJson<FailureClass>);
  reader.Required("message", failed.message);
  return failed;
}

TrialOutcome ReadCancelled(JsonReader& reader) {
  Cancelled cancelled;
  reader.Optional("reason", cancelled.reason);
  return cancelled;
}

}  // namespace

TrialState StateOf(const TrialOutcome& outcome) {
  if (std::holds_alternative<Completed>(outcome)) return TrialState::kCompleted;
  if (std::holds_alternative<Failed>(outcome)) return TrialState::kFailed;
  if (std::holds_alternative<Cancelled>(outcome)) return TrialState::kCancelled;
  return TrialState::kPruned;
}

std::optional<PruneReason> PruneReasonOf(const TrialOutcome& outcome) {
  if (std::holds_alternative<StoppedByPruner>(outcome)) return PruneReason::kPruner;
  const OutOfMemory* oom = std::get_if<OutOfMemory>(&outcome);
  if (oom == nullptr) return std::nullopt;
  if (oom->kind == OomKind::kHost) return PruneReason::kHostOutOfMemory;
  return oom->predicted ? PruneReason::kPredictedOutOfMemory : PruneReason::kOutOfMemory;
}

absl::string_view Name(TrialState state) { return NameIn(state); }
absl::string_view Name(PruneReason reason) { return NameIn(reason); }
absl::string_view Name(Precision precision) { return NameIn(precision); }
absl::string_view Name(OomKind kind) { return NameIn(kind); }
absl::string_view Name(FailureClass failure_class) { return NameIn(failure_class); }
absl::string_view Name(ReleaseReason reason) { return NameIn(reason); }
absl::string_view Name(AttemptState state) { return NameIn(state); }

template <typename Enum>
std::optional<Enum> ParseName(absl::string_view name) {
  const auto& names = NamesOf<Enum>::kNames;
  for (size_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

template std::optional<TrialState> ParseName(absl::string_view name);
template std::optional<PruneReason> ParseName(absl::string_view name);
template std::optional<Precision> ParseName(absl::string_view name);
template std::optional<OomKind> ParseName(absl::string_view name);
template std::optional<FailureClass> ParseName(absl::string_view name);
template std::optional<ReleaseReason> ParseName(absl::string_view name);
template std::optional<AttemptState> ParseName(absl::string_view name);

nlohmann::json MetricsToJson(const Metrics& metrics) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : metrics) {
    json[name] = std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
  }
  return json;
}

absl::StatusOr<Metrics> MetricsFromJson(const nlohmann::json& json) {
  Metrics metrics;
  const nlohmann::json holder = {{"metrics", json}};
  JsonReader reader(holder, "");
  reader.Required("metrics", metrics);
  HPO_RETURN_IF_ERROR(reader.status());
  return metrics;
}

nlohmann::json OutcomeToJson(const TrialOutcome& outcome) {
  return std::visit(OutcomeWriter(), outcome);
}

absl::StatusOr<TrialOutcome> OutcomeFromJson(const nlohmann::json& json) {
  constexpr NamedForm<TrialOutcome> kKinds[] = {
      {"completed", ReadCompleted},       {"stopped_by_pruner", ReadStoppedByPruner},
      {"out_of_memory", ReadOutOfMemory}, {"failed", ReadFailed},
      {"cancelled", ReadCancelled},
  };
  return FormFromJson(json, "kind", kKinds);
}

nlohmann::json PlanToJson(const MemoryPlan& plan) {
  return {{"effective_batch", plan.effective_batch},
          {"micro_batch", plan.micro_batch},
          {"checkpointing", plan.checkpointing},
          {"precision", std::string(Name(plan.precision))}};
}

absl::StatusOr<MemoryPlan> PlanFromJson(const nlohmann::json& json) {
  MemoryPlan plan;
  JsonReader reader(json, "");
  reader.Required("effective_batch", plan.effective_batch);
  reader.Required("micro_batch", plan.micro_batch);
  reader.Optional("checkpointing", plan.checkpointing);
  reader.OptionalWith("precision", plan.precision, EnumFromJson<Precision>);
  if (plan.effective_batch < 1) {
    reader.Fail("effective_batch", absl::StrCat("expected >= 1, got ", plan.effective_batch));
  }
  if (plan.micro_batch < 1) {
    reader.Fail("micro_batch", absl::StrCat("expected >= 1, got ", plan.micro_batch));
  }
  HPO_RETURN_IF_ERROR(reader.status());
  return plan;
}

nlohmann::json MemoryReportToJson(const MemoryReport& report) {
  return {{"baseline_bytes", report.baseline.count},
          {"live_peak_bytes", report.live_peak.count},
          {"reserved_peak_bytes", report.reserved_peak.count},
          {"device_peak_bytes", report.device_peak.count},
          {"limit_bytes", report.limit.count},
          {"peak_phase", report.peak_phase},
          {"num_ooms", report.num_ooms},
          {"num_replans", report.num_replans},
          {"growth_bytes", report.growth.count},
          {"growth_stage", report.growth_stage}};
}

absl::StatusOr<MemoryReport> MemoryReportFromJson(const nlohmann::json& json) {
  MemoryReport report;
  JsonReader reader(json, "");
  reader.Optional("baseline_bytes", report.baseline);
  reader.Optional("live_peak_bytes", report.live_peak);
  reader.Optional("reserved_peak_bytes", report.reserved_peak);
  reader.Optional("device_peak_bytes", report.device_peak);
  reader.Optional("limit_bytes", report.limit);
  reader.Optional("peak_phase", report.peak_phase);
  reader.Optional("num_ooms", report.num_ooms);
  reader.Optional("num_replans", report.num_replans);
  reader.Optional("growth_bytes", report.growth);
  reader.Optional("growth_stage", report.growth_stage);
  HPO_RETURN_IF_ERROR(reader.status());
  return report;
}

nlohmann::json MemoryRecordToJson(const MemoryRecord& record) {
  nlohmann::json json = {{"stage", record.stage}, {"step", record.step}};
  const std::pair<const char*, Bytes> sizes[] = {
      {"allocated_bytes", record.allocated},
      {"reserved_bytes", record.reserved},
      {"free_bytes", record.free},
      {"total_bytes", record.total},
      {"peak_bytes", record.peak},
      {"predicted_bytes", record.predicted},
      {"needed_bytes", record.needed},
      {"resident_bytes", record.resident},
      {"growth_bytes", record.growth},
      {"predicted_reserved_bytes", record.predicted_reserved}};
  for (const auto& [name, size] : sizes) {
    if (size > Bytes{}) json[name] = size.count;
  }
  if (record.plan) json["plan"] = PlanToJson(*record.plan);
  if (!record.growth_stage.empty()) json["growth_stage"] = record.growth_stage;
  if (record.sequence > 0) json["sequence"] = record.sequence;
  return json;
}

void ReadMemoryRecord(JsonReader& reader, MemoryRecord& record) {
  reader.Required("stage", record.stage);
  reader.Optional("allocated_bytes", record.allocated);
  reader.Optional("reserved_bytes", record.reserved);
  reader.Optional("free_bytes", record.free);
  reader.Optional("total_bytes", record.total);
  reader.Optional("peak_bytes", record.peak);
  reader.Optional("predicted_bytes", record.predicted);
  reader.Optional("predicted_reserved_bytes", record.predicted_reserved);
  reader.Optional("needed_bytes", record.needed);
  reader.OptionalWith("plan", record.plan, PlanFromJson);
  reader.Optional("step", record.step);
  reader.Optional("resident_bytes", record.resident);
  reader.Optional("growth_bytes", record.growth);
  reader.Optional("growth_stage", record.growth_stage);
  reader.Optional("sequence", record.sequence);
}

absl::StatusOr<MemoryRecord> MemoryRecordFromJson(const nlohmann::json& json) {
  MemoryRecord record;
  JsonReader reader(json, "");
  ReadMemoryRecord(reader, record);
  HPO_RETURN_IF_ERROR(reader.status());
  return record;
}

nlohmann::json OomConfig(const ParamMap& params) {
  constexpr std::pair<const char*, const char*> kKeys[] = {
      {"model", "model.name"},
      {"batch_size", "train.batch_size"},
      {"grad_accum", "train.grad_accum"},
      {"max_length", "tok.max_length"},
  };
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [key, parameter] : kKeys) {
    const auto found = params.find(parameter);
    if (found != params.end()) json[key] = ParamToJson(found->second);
  }
  const std::optional<int64_t> batch_size = FindInt(params, "train.batch_size");
  int64_t effective = 0;
  if (batch_size.has_value() &&
      !__builtin_mul_overflow(*batch_size, FindInt(params, "train.grad_accum").value_or(1),
                              &effective)) {
    json["effective_batch_size"] = effective;
  }
  return json;
}

}  // namespace hpo
