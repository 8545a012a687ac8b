// How a device runs a model's operations, as far as memory can tell.
#pragma once

#include <cstdint>

#include "memory/trace/attention_kernels.h"

namespace hpo::memory {

// Forward's and backward's. Each keeps a workspace of cuBLAS, and one of this size that torch gives
// cuBLASLt.
constexpr int64_t kThreadsThatMultiply = 2;
constexpr int64_t kBiasWorkspace = int64_t{1} << 20;

struct KernelTraits {
  // Allocations are counted rounded up to this.
  int64_t granularity = 64;
  // Torch's CPU kernels: attention with dropout is written out and keeps tokens x tokens; a number
  // in an operation becomes a tensor of its own.
  bool cpu = true;
  // Threads that have a buffer of their own in fused kernels and reductions; 0: no such buffers.
  int64_t threads_with_buffers = 0;
  AttentionKernels attention;  // of a card
  // Each thread that multiplies matrices keeps a workspace of this size (cuBLAS), and one for
  // products that add a bias (cuBLASLt); 0: none. Backward has a thread of its own.
  int64_t gemm_workspace = 0;
  int64_t bias_workspace = 0;
  // Of a card: its compute capability, 10 x major + minor, and what its sums share work over.
  int64_t capability = 0;
  int64_t multiprocessors = 0;
  int64_t threads_per_multiprocessor = 0;

  static KernelTraits Cpu() { return {.granularity = 64, .cpu = true, .threads_with_buffers = 64}; }
  // A card of which nothing is known: as large as an H100.
  static KernelTraits Cuda() {
    return {.granularity = 512,
            .cpu = false,
            .threads_with_buffers = 0,
            .attention = AttentionKernels::OfCapability(""),
            .capability = CapabilityNumber(""),
            .multiprocessors = 132,
            .threads_per_multiprocessor = 2048};
  }
  bool operator==(const KernelTraits&) const = default;
};

}  // namespace hpo::memory
