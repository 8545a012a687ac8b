// The sequence in which torch allocates and frees on the CPU: what the drift guard compares with
// the generated trace (common/memory), and what tells a reader where a byte comes from.
//
// Blocks are numbered in the order of their allocation, so that two recordings of the same work are
// equal whatever the addresses are. Only with one thread is the order the same each time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "common/bytes.h"
#include "worker/trainer/memory/counting_allocator.h"

namespace hpo {

struct RecordedEvent {
  enum class Kind { kAllocate, kFree };
  Kind kind = Kind::kAllocate;
  int64_t block = 0;  // from 0; -1: a block older than the recording
  Bytes counted;      // as the counting allocator counts the block
  // The torch operators and autograd nodes then running in that thread, outermost first, separated
  // by " > "; empty outside of any.
  std::string operation;
};

// "+ 12 4096 B aten::empty" or "- 12 4096 B": one line for people.
std::string FormatEvent(const RecordedEvent& event);

// Records from construction to destruction, both at a moment when no other thread allocates or
// frees. The only watcher while it lives. Thread-safe. While it lives every torch operator is
// slower by a microsecond or so.
class TraceRecorder final : public AllocationWatcher {
 public:
  TraceRecorder();
  ~TraceRecorder() override;
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  // What happened since the start or the last call. Numbers of blocks go on.
  std::vector<RecordedEvent> Take();

  bool Admit(Bytes) override { return true; }
  void Allocated(const void* address, Bytes size) override;
  void Freed(const void* address, Bytes size) override;

 private:
  const uint64_t operation_callback_;
  absl::Mutex mutex_;
  std::vector<RecordedEvent> events_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<const void*, int64_t> blocks_ ABSL_GUARDED_BY(mutex_);  // live ones
  int64_t num_blocks_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpo
