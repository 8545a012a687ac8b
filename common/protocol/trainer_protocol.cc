#include "common/protocol/trainer_protocol.h"

#include <algorithm>

#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/protocol/trial_task_fields.h"
#include "common/study/trial_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {

void VisitFields(Is<TrainerJob> auto& job, auto visit) {
  visit({"study"}, job.study);
  visit({"trial"}, job.trial.value);
  visit({"attempt"}, job.attempt.value);
  VisitFields(job.task, visit);
  visit({"model_name", kAlways}, job.model_name);
  visit({"model_path", kAlways}, job.model_path);
  visit({"device", kAlways}, job.device);
  visit({"output_dir"}, job.output_dir);
  visit({"checkpoint_dir", kAlways}, job.checkpoints.folder);
  visit({"checkpoint_every_steps", kAlways}, job.checkpoints.every_steps);
  visit({"checkpoint_every", kAlways}, job.checkpoints.every);
  visit({"checkpoint_quota", kAlways}, job.checkpoints.quota);
}

void VisitFields(Is<StopRequest> auto& stop, auto visit) {
  visit({"reason"}, stop.reason);
  visit({"checkpoint", kAlways}, stop.checkpoint);
}

void VisitFields(Is<ShutdownRequest> auto&, auto) {}

void VisitFields(Is<Hello> auto& hello, auto visit) {
  visit({"version"}, hello.version);
  visit({"program", kAlways}, hello.program);
  visit({"capabilities", kAlways}, hello.capabilities);
  visit({"torch_build", kAlways}, hello.torch_build);
}

void VisitFields(Is<MeasurementMessage> auto& message, auto visit) {
  VisitFields(message.measurement, visit);
}

void VisitFields(Is<CheckpointMessage> auto& message, auto visit) {
  visit({"kind"}, message.kind);
  visit({"path"}, message.path);
  visit({"step", kAlways}, message.step);
}

void VisitFields(Is<ProgressMessage> auto& message, auto visit) {
  visit({"step"}, message.step);
  visit({"total_steps", kAlways}, message.total_steps);
  visit({"loss", kAlways}, message.loss);
  visit({"stop", kAlways}, message.stop_time);
}

void VisitFields(Is<LogMessage> auto& message, auto visit) {
  visit({"level", kAlways}, message.level);
  visit({"text"}, message.text);
}

void VisitFields(Is<AttributesMessage> auto& message, auto visit) {
  visit({"attributes"}, message.attributes);
}

void VisitFields(Is<OutcomeMessage> auto& message, auto visit) {
  visit({"outcome"}, message.outcome);
  visit({"memory", kAlways}, message.memory);
  visit({"final_plan", kAlways}, message.final_plan);
  visit({"clean", kAlways}, message.clean);
}

namespace {

// A loss that is null is no number; one that is absent was not told.
UpMessage ReadProgress(JsonReader& reader) {
  ProgressMessage message;
  ReadFields(reader, message);
  if (reader.Has("loss")) reader.Required("loss", message.loss);
  return message;
}

UpMessage ReadLog(JsonReader& reader) {
  LogMessage message{.level = "info", .text = {}};
  ReadFields(reader, message);
  return message;
}

constexpr NamedForm<DownMessage> kDownForms[] = {
    {"job", ReadForm<DownMessage, TrainerJob>},
    {"stop", ReadForm<DownMessage, StopRequest>},
    {"shutdown", ReadForm<DownMessage, ShutdownRequest>}};

constexpr NamedForm<UpMessage> kUpForms[] = {
    {"hello", ReadForm<UpMessage, Hello>},
    {"measurement", ReadForm<UpMessage, MeasurementMessage>},
    {"memory", ReadForm<UpMessage, MemoryMessage>},
    {"checkpoint", ReadForm<UpMessage, CheckpointMessage>},
    {"progress", ReadProgress},
    {"log", ReadLog},
    {"attributes", ReadForm<UpMessage, AttributesMessage>},
    {"outcome", ReadForm<UpMessage, OutcomeMessage>}};

}  // namespace

bool Hello::Has(absl::string_view capability) const {
  return std::any_of(capabilities.begin(), capabilities.end(),
                     [&](const std::string& held) { return held == capability; });
}

std::string EncodeDown(const DownMessage& message) {
  return DumpJson(FormToJson(message, "type", kDownForms));
}

std::string EncodeUp(const UpMessage& message) {
  return DumpJson(FormToJson(message, "type", kUpForms));
}

absl::StatusOr<DownMessage> DecodeDown(absl::string_view line) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(line));
  return FormFromJson(json, "type", kDownForms);
}

absl::StatusOr<UpMessage> DecodeUp(absl::string_view line) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(line));
  return FormFromJson(json, "type", kUpForms);
}

}  // namespace hpo
