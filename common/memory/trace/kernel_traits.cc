#include "common/memory/trace/kernel_traits.h"

namespace hpo {

KernelTraits KernelTraits::Cpu() {
  return {.granularity = 64, .cpu = true, .threads_with_buffers = 64};
}

KernelTraits KernelTraits::Cuda() {
  return {.granularity = 512,
          .cpu = false,
          .threads_with_buffers = 0,
          .attention = AttentionKernels::OfCapability(""),
          .capability = CapabilityNumber(""),
          .multiprocessors = 132,
          .threads_per_multiprocessor = 2048};
}

}  // namespace hpo
