#include "worker/trainer/memory/allocator_log.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "worker/trainer/memory/counting_allocator.h"
#include "worker/trainer/memory/cuda_module.h"
#include "worker/trainer/memory/device_memory.h"

namespace hpo::trainer {
namespace {

constexpr absl::string_view kFirstLine = "hpo-trace 1";

// The counting allocator has no segments.
class CpuAllocatorLog final : public AllocatorLog, public AllocationWatcher {
 public:
  CpuAllocatorLog() { CountingAllocator::Install().SetWatcher(this); }
  ~CpuAllocatorLog() override { CountingAllocator::Install().SetWatcher(nullptr); }

  void NameOperations(OperationName name) override {
    const absl::MutexLock lock(&mutex_);
    name_ = name;
  }

  std::vector<AllocatorEvent> Held() override { return {}; }

  std::vector<AllocatorEvent> Take() override {
    const absl::MutexLock lock(&mutex_);
    return std::exchange(events_, {});
  }

  bool Admit(Bytes) override { return true; }

  void Allocated(const void* address, Bytes size) override {
    const absl::MutexLock lock(&mutex_);
    const int64_t block = numbers_.Add(reinterpret_cast<uint64_t>(address));
    Add({.kind = '+', .block = block, .bytes = size.count});
  }

  void Freed(const void* address, Bytes) override {
    const absl::MutexLock lock(&mutex_);
    const int64_t block = numbers_.Remove(reinterpret_cast<uint64_t>(address));
    if (block >= 0) Add({.kind = '-', .block = block});
  }

 private:
  void Add(AllocatorEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (name_ != nullptr) event.operation = name_();
    events_.push_back(std::move(event));
  }

  absl::Mutex mutex_;
  OperationName name_ ABSL_GUARDED_BY(mutex_) = nullptr;
  BlockNumbers numbers_ ABSL_GUARDED_BY(mutex_);
  std::vector<AllocatorEvent> events_ ABSL_GUARDED_BY(mutex_);
};

std::string FormatLine(const AllocatorEvent& event) {
  const std::string kind(1, event.kind);
  switch (event.kind) {
    case '+':
      return absl::StrCat(kind, " ", event.block, " ", event.bytes,
                          event.stream != 0 ? absl::StrCat(" ", event.stream) : "");
    case '-':
      return absl::StrCat(kind, " ", event.block);
    default:
      return absl::StrCat(kind, " ", event.bytes);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<AllocatorLog>> OpenAllocatorLog(const std::string& device) {
  HPO_ASSIGN_OR_RETURN(const std::optional<int> card, CardNumber(device));
  if (card.has_value()) return OpenCudaLog(*card);
  return std::make_unique<CpuAllocatorLog>();
}

std::string FormatTrace(const std::vector<AllocatorEvent>& events,
                        const std::vector<std::string>& about) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const std::string& line : about) absl::StrAppend(&text, "# ", line, "\n");
  for (const AllocatorEvent& event : events) absl::StrAppend(&text, FormatLine(event), "\n");
  return text;
}

}  // namespace hpo::trainer
