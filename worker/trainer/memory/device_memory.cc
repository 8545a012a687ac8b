#include "worker/trainer/memory/device_memory.h"

#include <ATen/Version.h>
#include <malloc.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/device/host_memory.h"
#include "worker/trainer/memory/counting_allocator.h"
#include "worker/trainer/memory/cuda_module.h"

namespace hpo::trainer {
namespace {

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

}  // namespace

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

absl::StatusOr<std::unique_ptr<DeviceMemory>> OpenDeviceMemory(const std::string& device) {
  HPO_ASSIGN_OR_RETURN(const std::optional<int> card, CardNumber(device));
  if (card.has_value()) return OpenCudaMemory(*card);
  return std::make_unique<CpuMemory>();
}

}  // namespace hpo::trainer
