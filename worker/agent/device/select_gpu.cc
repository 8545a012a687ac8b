#include "worker/agent/device/select_gpu.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace hpo::agent {

absl::StatusOr<GpuState> SelectGpu(std::span<const GpuState> gpus, const std::string& selector) {
  int64_t index = -1;
  const bool by_index = absl::SimpleAtoi(selector, &index);
  std::vector<GpuState> matches;
  for (const GpuState& gpu : gpus) {
    const bool matches_selector =
        by_index ? gpu.index == index : !selector.empty() && absl::StartsWith(gpu.uuid, selector);
    if (matches_selector) matches.push_back(gpu);
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    return absl::NotFoundError(
        absl::StrCat("--gpu ", selector, ": no such card; there are: ", DescribeGpus(gpus)));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--gpu ", selector, ": expected one card, got several: ", DescribeGpus(matches)));
}

}  // namespace hpo::agent
