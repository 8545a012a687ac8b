#include "worker/trainer/memory/trace_recorder.h"

#include <ATen/record_function.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hpo {
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

}  // namespace

std::string FormatEvent(const RecordedEvent& event) {
  const bool allocates = event.kind == RecordedEvent::Kind::kAllocate;
  return absl::StrCat(allocates ? "+ " : "- ", event.block, " ", event.counted.count, " B ",
                      event.operation);
}

TraceRecorder::TraceRecorder()
    : operation_callback_(at::addGlobalCallback(
          at::RecordFunctionCallback(OperationStarts, OperationEnds)
              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}))) {
  CountingAllocator::Install().SetWatcher(this);
}

TraceRecorder::~TraceRecorder() {
  CountingAllocator::Install().SetWatcher(nullptr);
  at::removeCallback(operation_callback_);
  RunningOperations().clear();
}

std::vector<RecordedEvent> TraceRecorder::Take() {
  const absl::MutexLock lock(&mutex_);
  return std::exchange(events_, {});
}

void TraceRecorder::Allocated(const void* address, Bytes size) {
  const absl::MutexLock lock(&mutex_);
  const int64_t block = num_blocks_++;
  blocks_[address] = block;
  events_.push_back({.kind = RecordedEvent::Kind::kAllocate,
                     .block = block,
                     .counted = size,
                     .operation = absl::StrJoin(RunningOperations(), " > ")});
}

void TraceRecorder::Freed(const void* address, Bytes size) {
  const absl::MutexLock lock(&mutex_);
  const auto found = blocks_.find(address);
  events_.push_back({.kind = RecordedEvent::Kind::kFree,
                     .block = found == blocks_.end() ? -1 : found->second,
                     .counted = size,
                     .operation = absl::StrJoin(RunningOperations(), " > ")});
  if (found != blocks_.end()) blocks_.erase(found);
}

}  // namespace hpo
