// Tested by tests/worker/trainer/memory/allocator_log_test.cc.
#include "worker/trainer/memory/open_device.h"

#include <ATen/Version.h>
#include <malloc.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status.h"
#include "common/device/host_memory.h"
#include "worker/trainer/memory/counting_allocator.h"
#include "worker/trainer/memory/cuda_module.h"

namespace hpo::trainer {
namespace {

// N of "cuda:N"; nullopt for "cpu".
absl::StatusOr<std::optional<int>> CardNumber(const std::string& device) {
  if (device == "cpu") return std::nullopt;
  int index = 0;
  if (absl::StartsWith(device, "cuda:") &&
      absl::SimpleAtoi(absl::StripPrefix(device, "cuda:"), &index) && index >= 0) {
    return index;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device: expected cpu or cuda:N, got '", device, "'"));
}

class CpuMemory final : public DeviceMemory {
 public:
  CpuMemory() : allocator_(CountingAllocator::Install()) {
    const auto allowed = HostMemoryReader().ReadAllowed();
    if (allowed.ok()) host_total_ = allocator_.live() + *allowed;
  }
  ~CpuMemory() override { allocator_.SetLimit(Bytes{}); }

  MemoryUse Read() const override {
    MemoryUse use;
    use.live = use.reserved = allocator_.live();
    use.peak = use.reserved_peak = allocator_.peak();
    use.total = allocator_.limit() > Bytes{} ? allocator_.limit() : host_total_;
    use.free = std::max(Bytes{}, use.total - use.live);
    return use;
  }

  void ResetPeak() override { allocator_.ResetPeak(); }
  void SetLimit(Bytes limit) override { allocator_.SetLimit(limit); }
  // What malloc keeps of freed tensors.
  void ReleaseCache() override { ::malloc_trim(0); }
  bool Relieve(Relief) override { return false; }
  std::optional<RefusedAllocation> TakeRefused() override { return allocator_.TakeRefused(); }
  DeviceDescription Describe() const override {
    return {.kind = "CPU",
            .name = {},
            .uuid = {},
            .capability = at::get_cpu_capability(),
            .allocator = std::nullopt};
  }

 private:
  CountingAllocator& allocator_;
  Bytes host_total_;  // what this process could have when it was made
};

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

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceMemory>> OpenDeviceMemory(const std::string& device) {
  HPO_ASSIGN_OR_RETURN(const std::optional<int> card, CardNumber(device));
  if (card.has_value()) return OpenCudaMemory(*card);
  return std::make_unique<CpuMemory>();
}

absl::StatusOr<std::unique_ptr<AllocatorLog>> OpenAllocatorLog(const std::string& device) {
  HPO_ASSIGN_OR_RETURN(const std::optional<int> card, CardNumber(device));
  if (card.has_value()) return OpenCudaLog(*card);
  return std::make_unique<CpuAllocatorLog>();
}

}  // namespace hpo::trainer
