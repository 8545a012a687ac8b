// How a device runs a model's operations, as far as memory can tell.
#pragma once

#include <cstdint>

namespace hpo {

// Kernels of scaled dot product attention: what each keeps for backward differs.
enum class AttentionKernel {
  kFlash,      // fused; the log-sum-exp of every query; 16-bit types
  kEfficient,  // fused; the log-sum-exp, queries rounded up to 32; all types
  kMath,       // written out: keeps tokens x tokens for every head
};

struct KernelTraits {
  // Allocations are counted rounded up to this.
  int64_t granularity = 64;
  // Torch's CPU kernels: attention with dropout is written out and keeps tokens x tokens; a number
  // in an operation becomes a tensor of its own.
  bool cpu = true;
  // Threads that have a buffer of their own in fused kernels and reductions; 0: no such buffers.
  int64_t threads_with_buffers = 0;
  AttentionKernel attention = AttentionKernel::kEfficient;  // but on a CPU
  // Each thread that multiplies matrices keeps a workspace of this size (cuBLAS); 0: none. Backward
  // has a thread of its own.
  int64_t gemm_workspace = 0;

  static KernelTraits Cpu();
  static KernelTraits Cuda();
  bool operator==(const KernelTraits&) const = default;
};

}  // namespace hpo
