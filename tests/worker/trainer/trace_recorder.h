// The sequence in which torch allocates and frees on a device, and what ran meanwhile: what the
// drift guard compares with the generated trace (memory/), and what tells a reader where a
// byte comes from.
//
// Blocks are numbered in the order of their allocation, so that two recordings of the same work are
// equal whatever the addresses are. On a CPU the order is the same each time only with one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/trainer/memory/allocator_log.h"

namespace hpo::trainer {

// "+ 12 4096 B aten::empty" or "- 12 aten::add": one line for people.
std::string FormatEvent(const AllocatorEvent& event);

// Records from construction to destruction, both at a moment when no other thread allocates or
// frees; one at a time. An event's operation: the torch operators and autograd nodes then running
// in that thread, outermost first, separated by " > "; empty outside of any. While it lives every
// torch operator is slower by a microsecond or so.
class TraceRecorder {
 public:
  // `device`: "cpu" or "cuda:N", whose memory is open already.
  explicit TraceRecorder(const std::string& device = "cpu");
  ~TraceRecorder();
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // See AllocatorLog.
  std::vector<AllocatorEvent> Take() { return log_->Take(); }

 private:
  const uint64_t operation_callback_;
  std::unique_ptr<AllocatorLog> log_;
};

}  // namespace hpo::trainer
