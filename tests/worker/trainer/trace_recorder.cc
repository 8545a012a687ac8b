#include "tests/worker/trainer/trace_recorder.h"

#include <ATen/record_function.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "worker/trainer/memory/open_device.h"

namespace hpo::trainer {
namespace {

std::vector<const char*>& RunningOperations() {
  thread_local std::vector<const char*> running;
  return running;
}

// Names are owned by torch's registries of operators and nodes, or by the RecordFunction itself,
// which lives until its end callback.
std::unique_ptr<at::ObserverContext> OperationStarts(const at::RecordFunction& function) {
  RunningOperations().push_back(function.name());
  return nullptr;
}

void OperationEnds(const at::RecordFunction&, at::ObserverContext*) {
  // Empty when the recording began inside the operation.
  if (!RunningOperations().empty()) RunningOperations().pop_back();
}

std::string RunningOperation() { return absl::StrJoin(RunningOperations(), " > "); }

}  // namespace

std::string FormatEvent(const AllocatorEvent& event) {
  const bool allocates = event.kind == '+';
  return absl::StrCat(allocates ? "+ " : "- ", event.block, " ",
                      allocates ? absl::StrCat(event.bytes, " B ") : "", event.operation);
}

TraceRecorder::TraceRecorder(const std::string& device)
    : operation_callback_(at::addGlobalCallback(
          at::RecordFunctionCallback(OperationStarts, OperationEnds)
              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {
  absl::StatusOr<std::unique_ptr<AllocatorLog>> log = OpenAllocatorLog(device);
  HPO_CHECK(log.ok());
  log_ = *std::move(log);
  log_->NameOperations(RunningOperation);
}

TraceRecorder::~TraceRecorder() {
  log_.reset();
  at::removeCallback(operation_callback_);
  RunningOperations().clear();
}

}  // namespace hpo::trainer
