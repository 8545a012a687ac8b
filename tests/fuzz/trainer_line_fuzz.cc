// Any bytes as a line of a trainer. What the worker takes of it can be reported: the server's check
// of requests refuses nothing.
#include <cstddef>
#include <cstdint>
#include <variant>

#include "common/base/status.h"
#include "proto/convert/outcome_proto.h"
#include "proto/convert/request_check.h"
#include "worker/agent/process/trainer_line.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view line(reinterpret_cast<const char*>(data), size);
  const auto message = hpo::agent::ReadTrainerLine(line);
  if (!message.ok()) return 0;
  if (const auto* measured = std::get_if<hpo::MeasurementMessage>(&*message)) {
    HPO_CHECK(hpo::CheckRequest(hpo::ToProto(measured->measurement)).ok());
  } else if (const auto* memory = std::get_if<hpo::MemoryMessage>(&*message)) {
    HPO_CHECK(hpo::CheckRequest(hpo::ToProto(*memory)).ok());
  } else if (const auto* ended = std::get_if<hpo::OutcomeMessage>(&*message)) {
    if (ended->outcome) HPO_CHECK(hpo::CheckRequest(hpo::ToProto(*ended->outcome)).ok());
    HPO_CHECK(hpo::CheckRequest(hpo::ToMessage<hpo::v1::MemoryReport>(ended->memory)).ok());
    HPO_CHECK(hpo::CheckRequest(hpo::ToProto(ended->final_plan)).ok());
  }
  return 0;
}
