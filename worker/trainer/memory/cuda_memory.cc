// Tested by tests/integration/test_emulated_card.py.
// The module hpo_cuda: the only code of the tree that names CUDA. See cuda_module.h for its
// contract.
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string>
#include <typeinfo>
#include <utility>

#include "worker/trainer/memory/device_memory.h"
#include "worker/trainer/memory/memory_fraction.h"

// Of ATen/cuda/CUDAContextLight.h, which wants the headers of CUDA's math libraries: 400 MB of
// packages that nothing else here needs.
namespace at::cuda {
TORCH_CUDA_CPP_API void clearCublasWorkspaces();
}

namespace hpo::trainer {
namespace {

namespace cuda_allocator = c10::cuda::CUDACachingAllocator;

constexpr size_t kAggregate = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

// The allocator's observer outlives every CudaMemory, and so must what it writes to.
struct LastRefusal {
  std::mutex mutex;
  std::optional<RefusedAllocation> refused;
};

LastRefusal& Refusal() {
  static auto* const refusal = new LastRefusal;
  return *refusal;
}

void ObserveRefusals() {
  static std::once_flag once;
  std::call_once(once, [] {
    cuda_allocator::attachOutOfMemoryObserver(
        [](int64_t device, size_t requested, size_t, size_t device_free) {
          // Torch calls observers after it has let go of the device's lock.
          const auto stats = cuda_allocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
          const std::lock_guard<std::mutex> lock(Refusal().mutex);
          Refusal().refused =
              RefusedAllocation{.requested = Bytes{static_cast<int64_t>(requested)},
                                .live = Bytes{stats.allocated_bytes[kAggregate].current},
                                .limit = {},
                                .device_free = Bytes{static_cast<int64_t>(device_free)}};
        });
  });
}

memory::AllocatorOptions AllocatorInUse() {
  using Config = c10::CachingAllocator::AcceleratorAllocatorConfig;
  memory::AllocatorOptions options;
  options.expandable_segments = Config::use_expandable_segments();
  if (Config::max_split_size() < static_cast<size_t>(options.max_split_bytes)) {
    options.max_split_bytes = static_cast<int64_t>(Config::max_split_size());
  }
  options.garbage_collection_threshold = Config::garbage_collection_threshold();
  // Torch can have another for each size; what counts is that of large tensors.
  constexpr size_t kLargeTensor = size_t{16} << 20;
  options.roundup_power2_divisions =
      static_cast<int64_t>(Config::roundup_power2_divisions(kLargeTensor));
  return options;
}

// As the driver writes it: "GPU-8-4-4-4-12" in hexadecimal.
std::string FormatUuid(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char hexadecimal[3];
    std::snprintf(hexadecimal, sizeof hexadecimal, "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += hexadecimal;
  }
  return text;
}

// Torch asks once in a process for the hooks that libtorch_cuda registers, and keeps the answer.
bool HooksWereAskedForTooEarly() {
  return typeid(at::detail::getCUDAHooks()) == typeid(at::CUDAHooksInterface);
}

class CudaMemory final : public DeviceMemory {
 public:
  explicit CudaMemory(c10::DeviceIndex device) : device_(device) {
    size_t free = 0;
    size_t total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    device_total_ = Bytes{static_cast<int64_t>(total)};
  }

  ~CudaMemory() override {
    try {
      cuda_allocator::setMemoryFraction(1.0, device_);
    } catch (const c10::Error&) {
      // The card is lost, and this process with it.
    }
  }

  MemoryUse Read() const override {
    const auto stats = cuda_allocator::getDeviceStats(device_);
    MemoryUse use;
    use.live = Bytes{stats.allocated_bytes[kAggregate].current};
    use.reserved = Bytes{stats.reserved_bytes[kAggregate].current};
    use.peak = Bytes{stats.allocated_bytes[kAggregate].peak};
    use.reserved_peak = Bytes{stats.reserved_bytes[kAggregate].peak};
    use.alloc_retries = stats.num_alloc_retries;
    size_t free = 0;
    size_t total = 0;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    use.free = Bytes{static_cast<int64_t>(free)};
    use.total = Bytes{static_cast<int64_t>(total)};
    if (limit_ > Bytes{}) {
      use.total = limit_;
      use.free = std::min(use.free, std::max(Bytes{}, limit_ - use.reserved));
    }
    return use;
  }

  void ResetPeak() override { cuda_allocator::resetPeakStats(device_); }

  void SetLimit(Bytes limit) override {
    if (std::exchange(expands_for_now_, false)) {
      c10::CachingAllocator::setAllocatorSettings("expandable_segments:False");
    }
    limit_ = std::min(limit, device_total_);
    cuda_allocator::setMemoryFraction(MemoryFraction(limit_, device_total_), device_);
  }

  void ReleaseCache() override {
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    cuda_allocator::emptyCache();
  }

  bool Relieve(Relief relief) override {
    switch (relief) {
      case Relief::kNewWorkspaces:
        C10_CUDA_CHECK(cudaDeviceSynchronize());
        at::cuda::clearCublasWorkspaces();
        cuda_allocator::emptyCache();
        return true;
      case Relief::kExpandableSegments:
        if (c10::CachingAllocator::AcceleratorAllocatorConfig::use_expandable_segments()) {
          return false;
        }
        c10::CachingAllocator::setAllocatorSettings("expandable_segments:True");
        expands_for_now_ = true;
        return true;
    }
    return false;
  }

  std::optional<RefusedAllocation> TakeRefused() override {
    std::optional<RefusedAllocation> refused;
    {
      const std::lock_guard<std::mutex> lock(Refusal().mutex);
      refused = std::exchange(Refusal().refused, std::nullopt);
    }
    if (refused.has_value()) refused->limit = limit_;
    return refused;
  }

  DeviceDescription Describe() const override {
    cudaDeviceProp properties{};
    C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device_));
    return {.kind = "GPU",
            .name = properties.name,
            .uuid = FormatUuid(properties.uuid),
            .capability = std::to_string(properties.major) + "." + std::to_string(properties.minor),
            .allocator = AllocatorInUse(),
            .multiprocessors = properties.multiProcessorCount,
            .threads_per_multiprocessor = properties.maxThreadsPerMultiProcessor};
  }

 private:
  c10::DeviceIndex device_;
  Bytes device_total_;
  Bytes limit_;
  bool expands_for_now_ = false;
};

}  // namespace
}  // namespace hpo::trainer

extern "C" __attribute__((visibility("default"))) hpo::trainer::DeviceMemory* hpo_open_cuda_memory(
    int index, char* error, size_t error_size) {
  const int num_devices = c10::cuda::device_count();
  if (index >= num_devices) {
    std::snprintf(error, error_size,
                  "cuda:%d: no such card; the driver shows %d (is an NVIDIA driver loaded and is "
                  "CUDA_VISIBLE_DEVICES right?)",
                  index, num_devices);
    return nullptr;
  }
  if (hpo::trainer::HooksWereAskedForTooEarly()) {
    std::snprintf(error, error_size,
                  "cuda:%d: torch looked for CUDA before hpo_cuda.so was loaded, and found none; "
                  "this is a bug of hpo-trainer, and only a new process can use the card",
                  index);
    return nullptr;
  }
  if (const std::string allocator = hpo::trainer::cuda_allocator::get()->name();
      allocator != "native") {
    std::snprintf(error, error_size,
                  "cuda:%d: expected torch's native allocator, got %s: leave backend out of "
                  "PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF",
                  index, allocator.c_str());
    return nullptr;
  }
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
  hpo::trainer::ObserveRefusals();
  return new hpo::trainer::CudaMemory(static_cast<c10::DeviceIndex>(index));
}
