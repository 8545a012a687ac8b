#include "worker/trainer/memory/memory_fault.h"

#include <c10/util/Exception.h>
#include <c10/util/Lazy.h>

#include <memory>
#include <new>
#include <stdexcept>

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

const c10::SourceLocation kHere{"f", "file.cc", 1};

TEST(ClassifyError, RecognisesMemoryByType) {
  const auto oom = ClassifyError(c10::OutOfMemoryError(kHere, "no room"));
  ASSERT_TRUE(oom.has_value());
  EXPECT_EQ(oom->type, MemoryFaultType::kDevice);
  EXPECT_EQ(oom->message, "no room");
  const auto host = ClassifyError(std::bad_alloc());
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ(host->type, MemoryFaultType::kHost);
}

TEST(ClassifyError, RecognisesCudaByItsErrorCode) {
  const auto type = [](int32_t code) {
    const auto fault = ClassifyError(c10::AcceleratorError(kHere, code, "CUDA error: x"));
    return fault.has_value() ? std::optional(fault->type) : std::nullopt;
  };
  EXPECT_EQ(type(2), MemoryFaultType::kDevice);
  for (const int32_t sticky : {700, 710, 719, 716, 214}) {
    EXPECT_EQ(type(sticky), MemoryFaultType::kDeviceLost) << sticky;
  }
}

struct ErrorText {
  const char* text;
  std::optional<MemoryFaultType> expected;
  bool certain = true;
};

TEST(ClassifyError, RecognisesMemoryByText) {
  const ErrorText cases[] = {
      {"CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 79.11 GiB "
       "of which 512.00 MiB is free.",
       MemoryFaultType::kDevice},
      {"CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some "
       "other API call, so the stacktrace below might be incorrect.",
       MemoryFaultType::kDevice},
      {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
       MemoryFaultType::kDevice},
      {"CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
       MemoryFaultType::kDevice, false},
      {"cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
       MemoryFaultType::kDevice},
      {"cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if you passed in a "
       "non-contiguous input.",
       MemoryFaultType::kDevice, false},
      {"mha_graph.execute(handle, variant_pack, workspace_ptr.get()).is_good() INTERNAL ASSERT",
       MemoryFaultType::kDevice, false},
      {"NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, unhandled cuda error "
       "(run with NCCL_DEBUG=INFO for details), NCCL version 2.27.7\nncclUnhandledCudaError: Call "
       "to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'",
       MemoryFaultType::kDeviceLost},
      {"CUDA error: out of memory when calling `cudaHostAlloc(&ptr, size, flags)`",
       MemoryFaultType::kHost},
      {"[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you "
       "tried to allocate 4000000000000 bytes.",
       MemoryFaultType::kHost},
      {"[enforce fail at alloc_cpu.cpp:119] . DefaultCPUAllocator: not enough memory: you tried to "
       "allocate 4000000000000 bytes.",
       MemoryFaultType::kHost},
      {"CUDA error: an illegal memory access was encountered", MemoryFaultType::kDeviceLost},
      {"CUDA error: misaligned address", MemoryFaultType::kDeviceLost},
      {"CUDA error: unspecified launch failure", MemoryFaultType::kDeviceLost},
      {"CUDA error: uncorrectable ECC error encountered", MemoryFaultType::kDeviceLost},
      {"CUDA error: device-side assert triggered", MemoryFaultType::kDeviceLost},
      {"The size of tensor a (3) must match the size of tensor b (4)", std::nullopt},
      {"CUDA error: CUBLAS_STATUS_INVALID_VALUE", std::nullopt},
  };
  for (const auto& [text, expected, certain] : cases) {
    SCOPED_TRACE(text);
    const auto fault = ClassifyError(c10::Error(kHere, text));
    EXPECT_EQ(fault.has_value() ? std::optional(fault->type) : std::nullopt, expected);
    if (fault.has_value()) {
      EXPECT_EQ(fault->certain, certain);
    }
  }
}

TEST(ClassifyError, TellsPinnedHostMemoryByTheStack) {
  const auto type = [](const char* frame) {
    const c10::Error error("CUDA error: out of memory",
                           std::make_shared<c10::PrecomputedLazyValue<std::string>>(frame));
    return ClassifyError(error)->type;
  };
  EXPECT_EQ(type("frame #4: at::CachingHostAllocatorImpl<...>::allocate(unsigned long)"),
            MemoryFaultType::kHost);
  EXPECT_EQ(type("frame #4: at::native::copy_impl"), MemoryFaultType::kDevice);
}

TEST(NeededAtLeast, IsWhatWasLiveAndWhatWasAsked) {
  MemoryFault fault;
  EXPECT_EQ(NeededAtLeast(fault, {.live = MiB(1), .peak = MiB(3)}), MiB(3));
  fault.refused = RefusedAllocation{.requested = MiB(4), .live = MiB(2)};
  EXPECT_EQ(NeededAtLeast(fault, {.live = MiB(1), .peak = MiB(3)}), MiB(6));
}

TEST(ClassifyError, OtherErrorsAreNotAboutMemory) {
  // Text alone is not enough: only torch's own errors are read.
  EXPECT_FALSE(ClassifyError(std::runtime_error("CUDA out of memory")).has_value());
  EXPECT_FALSE(ClassifyError(std::logic_error("x")).has_value());
}

TEST(ClassifyError, KeepsTheStack) {
  std::optional<MemoryFault> fault;
  try {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "thrown here");
  } catch (const std::exception& error) {
    fault = ClassifyError(error);
  }
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->message, "thrown here");
  EXPECT_FALSE(fault->traceback.empty());
}

TEST(KindOfOom, TellsTheFiveKindsApart) {
  const MemoryFault host{.type = MemoryFaultType::kHost};
  const auto device = [](RefusedAllocation refused) {
    return MemoryFault{
        .type = MemoryFaultType::kDevice, .message = {}, .traceback = {}, .refused = refused};
  };
  const MemoryUse use{.live = GiB(10), .reserved = GiB(14), .total = GiB(24)};
  EXPECT_EQ(KindOfOom(host, use, 0), OomKind::kHost);
  // 14 + 1 of 24 GiB would be allowed, but the device has only 512 MiB: others hold the rest.
  EXPECT_EQ(KindOfOom(device({.requested = GiB(1), .device_free = MiB(512)}), use, 0),
            OomKind::kDirtyDevice);
  // 4 GiB lie in the cache, in pieces; the limit is reached.
  EXPECT_EQ(
      KindOfOom(device({.requested = GiB(3), .limit = GiB(15), .device_free = GiB(9)}), use, 5),
      OomKind::kFragmentation);
  const auto too_big = device({.requested = GiB(12), .limit = GiB(15), .device_free = GiB(9)});
  EXPECT_EQ(KindOfOom(too_big, use, 0), OomKind::kConfiguration);
  EXPECT_EQ(KindOfOom(too_big, use, 5), OomKind::kLatePeak);
  EXPECT_EQ(KindOfOom(MemoryFault{}, use, 0), OomKind::kConfiguration);
}

}  // namespace
}  // namespace hpo::trainer
