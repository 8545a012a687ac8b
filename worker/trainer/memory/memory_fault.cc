#include "worker/trainer/memory/memory_fault.h"

#include <c10/util/Backtrace.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "worker/trainer/memory/error_text.h"

namespace hpo::trainer {
namespace {

// cudaErrorMemoryAllocation. Not sticky: the process goes on.
constexpr int32_t kCudaOutOfMemory = 2;

// Texts of plain c10::Error that mean a CUDA library could not get memory. After pytorch's
// CublasHandlePool, cuDNN's status names and the driver's message.
constexpr std::array<absl::string_view, 5> kDeviceMemoryTexts = {
    "CUDA out of memory",         "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
};

// What those libraries also say when something else is wrong: MemoryFault::certain is false.
constexpr std::array<absl::string_view, 3> kLikelyDeviceMemoryTexts = {
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_NOT_SUPPORTED",
    "mha_graph.execute",
};

constexpr std::array<absl::string_view, 3> kHostMemoryTexts = {
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "cudaHostAlloc",
};

// Where CUDA's text does not tell pinned host memory from the card's, the stack does.
constexpr std::array<absl::string_view, 2> kHostAllocators = {
    "CachingHostAllocator",
    "PinnedMemory",
};

// A collective that failed leaves its communicator broken, whatever it failed of.
constexpr std::array<absl::string_view, 2> kCommunicatorTexts = {
    "NCCL error",
    "ncclUnhandledCudaError",
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

std::string StackOf(const c10::Error& error) {
  return error.backtrace() != nullptr ? error.backtrace()->get() : std::string();
}

std::optional<MemoryFaultType> TypeOf(const c10::Error& error, const std::string& stack) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {
    return MemoryFaultType::kDevice;
  }
  const std::string& text = error.msg();
  if (ContainsAny(text, kCommunicatorTexts)) return MemoryFaultType::kDeviceLost;
  if (ContainsAny(text, kHostMemoryTexts)) return MemoryFaultType::kHost;
  if (ContainsAny(text, kDeviceMemoryTexts)) {
    return ContainsAny(stack, kHostAllocators) ? MemoryFaultType::kHost : MemoryFaultType::kDevice;
  }
  if (ContainsAny(text, kLikelyDeviceMemoryTexts)) return MemoryFaultType::kDevice;
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
    std::string stack = StackOf(*torch_error);
    const std::optional<MemoryFaultType> type = TypeOf(*torch_error, stack);
    if (!type.has_value()) return std::nullopt;
    return MemoryFault{.type = *type,
                       .message = DescribeError(error),
                       .traceback = std::move(stack),
                       .refused = {},
                       .certain = !ContainsAny(torch_error->msg(), kLikelyDeviceMemoryTexts)};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return MemoryFault{.type = MemoryFaultType::kHost,
                       .message = "host memory ran out (std::bad_alloc)",
                       .traceback = {},
                       .refused = {}};
  }
  return std::nullopt;
}

Bytes NeededAtLeast(const MemoryFault& fault, const MemoryUse& use) {
  return fault.refused.has_value() ? fault.refused->live + fault.refused->requested : use.peak;
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

}  // namespace hpo::trainer
