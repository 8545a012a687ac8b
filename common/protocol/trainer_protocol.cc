#include "common/protocol/trainer_protocol.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/study/study_json.h"
#include "common/study/trial_measurement.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

nlohmann::json NumberOrNull(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

struct DownWriter {
  nlohmann::json operator()(const TrainerJob& job) const {
    return {{"type", "job"},
            {"study", job.study},
            {"trial", job.trial.value},
            {"attempt", job.attempt.value},
            {"params", ParamsToJson(job.params)},
            {"task", job.task},
            {"train_path", job.train_path},
            {"validation_path", job.validation_path},
            {"labels", job.labels},
            {"epochs", job.epochs},
            {"measure_every_steps", job.measure_every_steps},
            {"model_name", job.model_name},
            {"model_path", job.model_path},
            {"model_init", job.model_init},
            {"objective", ObjectiveToJson(job.objective)},
            {"device", job.device},
            {"policy", std::string(Name(job.policy))},
            {"allow_checkpointing", job.allow_checkpointing},
            {"admission", job.admission},
            {"limit_bytes", job.limit.count},
            {"plan", PlanToJson(job.plan)},
            {"predicted_bytes", job.predicted.count},
            {"seed", job.seed},
            {"output_dir", job.output_dir},
            {"checkpoint_dir", job.checkpoints.folder},
            {"checkpoint_every_steps", job.checkpoints.every_steps},
            {"checkpoint_every_seconds", absl::ToDoubleSeconds(job.checkpoints.every)},
            {"checkpoint_quota_bytes", job.checkpoints.quota.count}};
  }
  nlohmann::json operator()(const StopRequest& stop) const {
    return {{"type", "stop"}, {"reason", stop.reason}, {"checkpoint", stop.checkpoint}};
  }
  nlohmann::json operator()(const ShutdownRequest&) const { return {{"type", "shutdown"}}; }
};

struct UpWriter {
  nlohmann::json operator()(const Hello& hello) const {
    return {{"type", "hello"},
            {"version", hello.version},
            {"program", hello.program},
            {"capabilities", hello.capabilities},
            {"torch_build", hello.torch_build}};
  }
  nlohmann::json operator()(const MeasurementMessage& message) const {
    nlohmann::json json = MeasurementToJson(message.measurement);
    json["type"] = "measurement";
    return json;
  }
  nlohmann::json operator()(const MemoryMessage& message) const {
    nlohmann::json json = MemoryRecordToJson(message);
    json["type"] = "memory";
    return json;
  }
  nlohmann::json operator()(const CheckpointMessage& message) const {
    return {{"type", "checkpoint"},
            {"kind", message.kind},
            {"path", message.path},
            {"step", message.step}};
  }
  nlohmann::json operator()(const ProgressMessage& message) const {
    return {{"type", "progress"},
            {"step", message.step},
            {"total_steps", message.total_steps},
            {"loss", NumberOrNull(message.loss)},
            {"stop_seconds", absl::ToDoubleSeconds(message.stop_time)}};
  }
  nlohmann::json operator()(const LogMessage& message) const {
    return {{"type", "log"}, {"level", message.level}, {"text", message.text}};
  }
  nlohmann::json operator()(const AttributesMessage& message) const {
    return {{"type", "attributes"}, {"attributes", AttributesToJson(message.attributes)}};
  }
  nlohmann::json operator()(const OutcomeMessage& message) const {
    return {{"type", "outcome"},
            {"outcome",
             message.outcome.has_value() ? OutcomeToJson(*message.outcome) : nlohmann::json()},
            {"memory", MemoryReportToJson(message.memory)},
            {"final_plan", PlanToJson(message.final_plan)},
            {"clean", message.clean}};
  }
};

absl::StatusOr<MemoryPolicy> PolicyFromJson(const nlohmann::json& json) {
  if (json.is_string()) {
    if (const auto policy = ParseMemoryPolicy(json.get<std::string>())) return *policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected plan, strict or off, got ", DescribeJson(json)));
}

// An outcome, or null.
absl::StatusOr<std::optional<TrialOutcome>> OptionalOutcomeFromJson(const nlohmann::json& json) {
  if (json.is_null()) return std::nullopt;
  HPO_ASSIGN_OR_RETURN(TrialOutcome outcome, OutcomeFromJson(json));
  return std::optional<TrialOutcome>(std::move(outcome));
}

void ReadCheckpoints(JsonReader& reader, CheckpointSpec& checkpoints) {
  reader.Optional("checkpoint_dir", checkpoints.folder);
  reader.Optional("checkpoint_every_steps", checkpoints.every_steps);
  double seconds = 0.0;
  reader.Optional("checkpoint_every_seconds", seconds);
  checkpoints.every = absl::Seconds(seconds);
  reader.Optional("checkpoint_quota_bytes", checkpoints.quota);
}

DownMessage ReadJob(JsonReader& reader) {
  TrainerJob job;
  reader.Required("study", job.study);
  reader.Required("trial", job.trial.value);
  reader.Required("attempt", job.attempt.value);
  reader.RequiredWith("params", job.params, ParamsFromJson);
  reader.Optional("task", job.task);
  reader.Required("train_path", job.train_path);
  reader.Required("validation_path", job.validation_path);
  reader.Optional("labels", job.labels);
  reader.Required("epochs", job.epochs);
  reader.Optional("measure_every_steps", job.measure_every_steps);
  reader.Optional("model_name", job.model_name);
  reader.Optional("model_path", job.model_path);
  reader.Optional("model_init", job.model_init);
  reader.RequiredWith("objective", job.objective, ObjectiveFromJson);
  reader.Optional("device", job.device);
  reader.OptionalWith("policy", job.policy, PolicyFromJson);
  reader.Optional("allow_checkpointing", job.allow_checkpointing);
  reader.Optional("admission", job.admission);
  reader.Optional("limit_bytes", job.limit);
  reader.RequiredWith("plan", job.plan, PlanFromJson);
  reader.Optional("predicted_bytes", job.predicted);
  reader.Required("seed", job.seed);
  reader.Required("output_dir", job.output_dir);
  ReadCheckpoints(reader, job.checkpoints);
  return job;
}

DownMessage ReadStop(JsonReader& reader) {
  StopRequest stop;
  reader.Required("reason", stop.reason);
  reader.Optional("checkpoint", stop.checkpoint);
  return stop;
}

DownMessage ReadShutdown(JsonReader&) { return ShutdownRequest(); }

UpMessage ReadHello(JsonReader& reader) {
  Hello hello;
  reader.Required("version", hello.version);
  reader.Optional("program", hello.program);
  reader.Optional("capabilities", hello.capabilities);
  reader.Optional("torch_build", hello.torch_build);
  return hello;
}

UpMessage ReadMeasurementMessage(JsonReader& reader) {
  MeasurementMessage message;
  ReadMeasurement(reader, message.measurement);
  return message;
}

UpMessage ReadMemory(JsonReader& reader) {
  MemoryMessage message;
  ReadMemoryRecord(reader, message);
  return message;
}

UpMessage ReadCheckpoint(JsonReader& reader) {
  CheckpointMessage message;
  reader.Required("kind", message.kind);
  reader.Required("path", message.path);
  reader.Optional("step", message.step);
  return message;
}

UpMessage ReadProgress(JsonReader& reader) {
  ProgressMessage message;
  reader.Required("step", message.step);
  reader.Optional("total_steps", message.total_steps);
  if (reader.Has("loss")) reader.Required("loss", message.loss);
  double seconds = 0.0;
  reader.Optional("stop_seconds", seconds);
  message.stop_time = absl::Seconds(seconds);
  return message;
}

UpMessage ReadLog(JsonReader& reader) {
  LogMessage message;
  message.level = "info";
  reader.Optional("level", message.level);
  reader.Required("text", message.text);
  return message;
}

UpMessage ReadAttributes(JsonReader& reader) {
  AttributesMessage message;
  reader.RequiredWith("attributes", message.attributes, AttributesFromJson);
  return message;
}

UpMessage ReadOutcome(JsonReader& reader) {
  OutcomeMessage message;
  reader.RequiredWith("outcome", message.outcome, OptionalOutcomeFromJson);
  reader.OptionalWith("memory", message.memory, MemoryReportFromJson);
  reader.OptionalWith("final_plan", message.final_plan, PlanFromJson);
  reader.Optional("clean", message.clean);
  return message;
}

constexpr NamedForm<DownMessage> kDownForms[] = {
    {"job", ReadJob}, {"stop", ReadStop}, {"shutdown", ReadShutdown}};

constexpr NamedForm<UpMessage> kUpForms[] = {
    {"hello", ReadHello},           {"measurement", ReadMeasurementMessage},
    {"memory", ReadMemory},         {"checkpoint", ReadCheckpoint},
    {"progress", ReadProgress},     {"log", ReadLog},
    {"attributes", ReadAttributes}, {"outcome", ReadOutcome}};

}  // namespace

bool Hello::Has(absl::string_view capability) const {
  return std::any_of(capabilities.begin(), capabilities.end(),
                     [&](const std::string& held) { return held == capability; });
}

std::string EncodeDown(const DownMessage& message) {
  return DumpJson(std::visit(DownWriter(), message));
}

std::string EncodeUp(const UpMessage& message) { return DumpJson(std::visit(UpWriter(), message)); }

absl::StatusOr<DownMessage> DecodeDown(absl::string_view line) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(line));
  return FormFromJson(json, "type", kDownForms);
}

absl::StatusOr<UpMessage> DecodeUp(absl::string_view line) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(line));
  return FormFromJson(json, "type", kUpForms);
}

}  // namespace hpo
