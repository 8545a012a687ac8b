#include "worker/trainer/memory/memory_fault.h"

#include <c10/util/Backtrace.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace hpo {
namespace {

// cudaErrorMemoryAllocation. Not sticky: the process goes on.
constexpr int32_t kCudaOutOfMemory = 2;

// Texts of plain c10::Error that mean a CUDA library could not get memory. After pytorch's
// CublasHandlePool, cuDNN's status names and the driver's message.
constexpr std::array<absl::string_view, 7> kDeviceMemoryTexts = {
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "mha_graph.execute",
};

constexpr std::array<absl::string_view, 2> kHostMemoryTexts = {
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
};

// Errors after which the CUDA context is dead, by their text in older torch versions.
constexpr std::array<absl::string_view, 6> kDeviceLostTexts = {
    "an illegal memory access was encountered",
    "device-side assert triggered",
    "unspecified launch failure",
    "misaligned address",
    "uncorrectable ECC error",
    "the launch timed out",
};

template <size_t N>
bool ContainsAny(absl::string_view text, const std::array<absl::string_view, N>& needles) {
  return std::any_of(needles.begin(), needles.end(),
                     [text](absl::string_view needle) { return absl::StrContains(text, needle); });
}

std::optional<MemoryFaultType> TypeOf(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    return MemoryFaultType::kDevice;
  }
  const std::string& text = error.msg();
  if (ContainsAny(text, kDeviceMemoryTexts)) return MemoryFaultType::kDevice;
  if (ContainsAny(text, kHostMemoryTexts)) return MemoryFaultType::kHost;
  if (const auto* cuda = dynamic_cast<const c10::AcceleratorError*>(&error)) {
    return cuda->get_error_code() == kCudaOutOfMemory ? MemoryFaultType::kDevice
                                                      : MemoryFaultType::kDeviceLost;
  }
  if (ContainsAny(text, kDeviceLostTexts)) return MemoryFaultType::kDeviceLost;
  return std::nullopt;
}

}  // namespace

std::optional<MemoryFault> ClassifyError(const std::exception& error) {
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    const std::optional<MemoryFaultType> type = TypeOf(*torch_error);
    if (!type.has_value()) return std::nullopt;
    MemoryFault fault{.type = *type, .message = torch_error->msg(), .traceback = {}, .refused = {}};
    if (torch_error->backtrace() != nullptr) fault.traceback = torch_error->backtrace()->get();
    return fault;
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return MemoryFault{.type = MemoryFaultType::kHost,
                       .message = "host memory ran out (std::bad_alloc)",
                       .traceback = {},
                       .refused = {}};
  }
  return std::nullopt;
}

OomKind KindOfOom(const MemoryFault& fault, const MemoryUse& use, int64_t step) {
  if (fault.type == MemoryFaultType::kHost) return OomKind::kHost;
  if (fault.refused.has_value()) {
    const RefusedAllocation& refused = *fault.refused;
    const Bytes allowed = refused.limit > Bytes{} ? refused.limit : use.total;
    const bool room_under_limit = use.reserved + refused.requested <= allowed;
    if (room_under_limit && refused.device_free < refused.requested) return OomKind::kDirtyDevice;
    if (use.reserved - use.live >= refused.requested) return OomKind::kFragmentation;
  }
  return step > 0 ? OomKind::kLatePeak : OomKind::kConfiguration;
}

}  // namespace hpo
