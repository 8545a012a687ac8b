// Which of torch's attention kernels runs, by what is attended: they keep different things for
// backward.
// Source: torch 2.11, aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hpo::memory {

enum class AttentionKernel {
  kFlash,      // fused; the log-sum-exp of every query; 16-bit types
  kEfficient,  // fused; the log-sum-exp, queries rounded up to 32; all types
  kCudnn,      // fused, by cuDNN; as flash
  kMath,       // written out: keeps tokens x tokens for every head
};

// 86 of "8.6"; of a capability that is not known, 80.
int64_t CapabilityNumber(absl::string_view capability);

// The efficient kernel runs where the head size is a multiple of this.
int64_t LeastHeadSize(int64_t capability, int64_t element_size);

// "flash", "efficient", "cudnn" or "math".
absl::string_view Name(AttentionKernel kernel);
//   InvalidArgument  none of these
absl::StatusOr<AttentionKernel> ParseAttentionKernel(absl::string_view name);

// Without and with a mask, of one precision.
struct AttentionPair {
  AttentionKernel plain = AttentionKernel::kEfficient;
  AttentionKernel masked = AttentionKernel::kEfficient;
  bool operator==(const AttentionPair&) const = default;
};

struct AttentionKernels {
  AttentionPair float32;
  AttentionPair float16;
  AttentionPair bfloat16;
  bool operator==(const AttentionKernels&) const = default;

  // What torch takes on a card of `capability` ("8.6"), without cuDNN's; of a card that is not
  // known, what it takes from 8.0 on.
  static AttentionKernels OfCapability(absl::string_view capability);
};

// "fp32 efficient/efficient, fp16 flash/efficient, bf16 flash/efficient".
std::string FormatAttentionKernels(const AttentionKernels& kernels);
//   InvalidArgument  not such a text
absl::StatusOr<AttentionKernels> ParseAttentionKernels(absl::string_view text);

}  // namespace hpo::memory
