#include "worker/agent/process/trainer_line.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/study/outcome_text.h"
#include "hpo/v1/worker.pb.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/request_check.h"

namespace hpo::agent {
namespace {

static_assert(MemoryRecord::kLongestStage == static_cast<size_t>(kNameLimit.most));

void Shorten(std::string& text, const Limit& limit) {
  if (text.size() > static_cast<size_t>(limit.most)) text = Shortened(text, limit);
}

absl::Status CheckPath(const std::string& path) {
  v1::Completed completed;
  completed.set_model_path(path);
  return CheckRequest(completed);
}

absl::Status Settle(Hello& hello) {
  Shorten(hello.program, kTextLimit);
  Shorten(hello.torch_build, kTextLimit);
  return absl::OkStatus();
}

absl::Status Settle(MeasurementMessage& message) {
  return CheckRequest(ToProto(message.measurement));
}

// A step below zero is left to the report queue, which leaves the record out.
absl::Status Settle(MemoryMessage& message) {
  Shorten(message.stage, kNameLimit);
  Shorten(message.growth_stage, kNameLimit);
  message.sequence = 0;  // the worker numbers them
  MemoryRecord record = message;
  record.step = std::max<int64_t>(record.step, 0);
  return CheckRequest(ToProto(record));
}

// Heartbeats carry it.
absl::Status CheckStep(int64_t step) {
  v1::HeartbeatRequest::Lease lease;
  lease.set_step(std::max<int64_t>(step, 0));
  return CheckRequest(lease);
}

absl::Status Settle(CheckpointMessage& message) {
  Shorten(message.kind, kNameLimit);
  HPO_RETURN_IF_ERROR(CheckStep(message.step));
  return CheckPath(message.path);
}

absl::Status Settle(ProgressMessage& message) { return CheckStep(message.step); }

absl::Status Settle(LogMessage& message) {
  Shorten(message.text, kErrorTextLimit);
  return absl::OkStatus();
}

// What cannot be kept is left to the report queue, which leaves it out: it costs no training.
absl::Status Settle(AttributesMessage&) { return absl::OkStatus(); }

absl::Status Settle(OutcomeMessage& message) {
  Shorten(message.memory.peak_phase, kNameLimit);
  Shorten(message.memory.growth_stage, kNameLimit);
  HPO_RETURN_IF_ERROR(
      Annotate(CheckRequest(ToMessage<v1::MemoryReport>(message.memory)), "memory"));
  HPO_RETURN_IF_ERROR(Annotate(CheckRequest(ToProto(message.final_plan)), "final_plan"));
  if (!message.outcome) return absl::OkStatus();
  ShortenTexts(*message.outcome);
  return Annotate(CheckRequest(ToProto(*message.outcome)), "outcome");
}

}  // namespace

absl::StatusOr<UpMessage> ReadTrainerLine(absl::string_view line) {
  HPO_ASSIGN_OR_RETURN(UpMessage message, DecodeUp(line));
  HPO_RETURN_IF_ERROR(std::visit([](auto& body) { return Settle(body); }, message));
  return message;
}

}  // namespace hpo::agent
