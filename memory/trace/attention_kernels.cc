// Tested by tests/memory/trace/step_tracer_test.cc.
#include "memory/trace/attention_kernels.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {
namespace {

std::string FormatPair(const AttentionPair& pair) {
  return absl::StrCat(Name(pair.plain), "/", Name(pair.masked));
}

absl::StatusOr<AttentionPair> ParsePair(absl::string_view text) {
  const std::vector<absl::string_view> names = absl::StrSplit(text, '/');
  if (names.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected two kernels such as flash/efficient, got '", text, "'"));
  }
  AttentionPair pair;
  HPO_ASSIGN_OR_RETURN(pair.plain, ParseAttentionKernel(names[0]));
  HPO_ASSIGN_OR_RETURN(pair.masked, ParseAttentionKernel(names[1]));
  return pair;
}

}  // namespace

int64_t CapabilityNumber(absl::string_view capability) {
  constexpr int64_t kUnknown = 80;
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(capability, '.');
  int64_t major = 0;
  int64_t minor = 0;
  const bool known =
      absl::SimpleAtoi(parts.first, &major) && absl::SimpleAtoi(parts.second, &minor);
  return known ? 10 * major + minor : kUnknown;
}

int64_t LeastHeadSize(int64_t capability, int64_t element_size) {
  constexpr int64_t kTensorCoreBytes = 16;
  const bool uses_tensor_cores =
      capability >= 80 || (capability >= 70 && element_size < kFloatBytes);
  return uses_tensor_cores ? kTensorCoreBytes / element_size : 1;
}

absl::string_view Name(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kFlash:
      return "flash";
    case AttentionKernel::kEfficient:
      return "efficient";
    case AttentionKernel::kCudnn:
      return "cudnn";
    case AttentionKernel::kMath:
      return "math";
  }
  return "";
}

absl::StatusOr<AttentionKernel> ParseAttentionKernel(absl::string_view name) {
  for (const AttentionKernel kernel : {AttentionKernel::kFlash, AttentionKernel::kEfficient,
                                       AttentionKernel::kCudnn, AttentionKernel::kMath}) {
    if (name == Name(kernel)) return kernel;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected flash, efficient, cudnn or math, got '", name, "'"));
}

AttentionKernels AttentionKernels::OfCapability(absl::string_view capability) {
  constexpr int64_t kAmpere = 80;
  AttentionKernels kernels;
  if (CapabilityNumber(capability) >= kAmpere) {
    kernels.float16.plain = kernels.bfloat16.plain = AttentionKernel::kFlash;
  } else {
    kernels.bfloat16 = {.plain = AttentionKernel::kMath, .masked = AttentionKernel::kMath};
  }
  return kernels;
}

std::string FormatAttentionKernels(const AttentionKernels& kernels) {
  return absl::StrCat("fp32 ", FormatPair(kernels.float32), ", fp16 ", FormatPair(kernels.float16),
                      ", bf16 ", FormatPair(kernels.bfloat16));
}

absl::StatusOr<AttentionKernels> ParseAttentionKernels(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ", ");
  constexpr absl::string_view kPrecisions[] = {"fp32 ", "fp16 ", "bf16 "};
  AttentionKernels kernels;
  AttentionPair* const pairs[] = {&kernels.float32, &kernels.float16, &kernels.bfloat16};
  for (size_t i = 0; i < std::size(pairs); ++i) {
    if (parts.size() != std::size(pairs) || parts[i].substr(0, 5) != kPrecisions[i]) {
      return absl::InvalidArgumentError(absl::StrCat("attention: expected kernels such as '",
                                                     FormatAttentionKernels({}), "', got '", text,
                                                     "'"));
    }
    HPO_ASSIGN_OR_RETURN(*pairs[i], ParsePair(parts[i].substr(5)));
  }
  return kernels;
}

}  // namespace hpo::memory
