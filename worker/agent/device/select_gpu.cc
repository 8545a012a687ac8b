#include "worker/agent/device/select_gpu.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::agent {
namespace {

bool HasUuid(const GpuState& gpu, const std::string& beginning) {
  return !beginning.empty() &&
         (absl::StartsWith(gpu.uuid, beginning) || absl::StartsWith(gpu.parent_uuid, beginning));
}

std::optional<int64_t> NumberOf(const std::string& selector) {
  int64_t number = -1;
  if (!absl::SimpleAtoi(selector, &number)) return std::nullopt;
  return number;
}

std::string Setting(const VisibilityVariables& variables) {
  return absl::StrCat(kVisibleGpusVariable, "=", variables.visible.value_or(""));
}

// Why no GPU is visible.
absl::Status NoneVisible(std::span<const GpuState> gpus, const VisibleGpus& visible,
                         const VisibilityVariables& variables) {
  if (gpus.empty()) return absl::NotFoundError("expected at least one GPU, found none");
  if (!visible.warning.empty()) return absl::FailedPreconditionError(visible.warning);
  return absl::FailedPreconditionError(absl::StrCat(
      Setting(variables), " hides every GPU from this process; there are: ", DescribeGpus(gpus)));
}

absl::StatusOr<GpuState> SelectOne(std::span<const GpuState> gpus, const VisibleGpus& visible,
                                   const VisibilityVariables& variables,
                                   const std::string& selector) {
  const std::optional<int64_t> number = NumberOf(selector);
  std::vector<GpuState> matches;
  for (size_t place = 0; place < visible.gpus.size(); ++place) {
    const GpuState& gpu = visible.gpus[place];
    const int64_t own_number = variables.visible ? static_cast<int64_t>(place) : gpu.index;
    if (number ? own_number == *number : HasUuid(gpu, selector)) matches.push_back(gpu);
  }
  if (matches.size() == 1) return matches.front();
  if (!matches.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--gpu ", selector, ": expected one GPU, got several: ", DescribeGpus(matches),
                     "; give one's UUID"));
  }
  const auto is_it = [&](const GpuState& gpu) { return HasUuid(gpu, selector); };
  if (!number && std::any_of(gpus.begin(), gpus.end(), is_it)) {
    return absl::FailedPreconditionError(
        absl::StrCat("--gpu ", selector, ": ", Setting(variables),
                     " hides this GPU from this process; it shows ", DescribeGpus(visible.gpus)));
  }
  if (number && variables.visible) {
    return absl::NotFoundError(absl::StrCat(
        "--gpu ", selector, ": expected a number from 0 to ", visible.gpus.size() - 1,
        ", the place in ", Setting(variables), "; it shows ", DescribeGpus(visible.gpus)));
  }
  return absl::NotFoundError(
      absl::StrCat("--gpu ", selector, ": no such GPU; there are: ", DescribeGpus(gpus)));
}

}  // namespace

absl::StatusOr<VisibleGpus> SelectGpus(std::span<const GpuState> gpus,
                                       const VisibilityVariables& variables,
                                       const std::string& selector) {
  VisibleGpus visible = SelectVisible(gpus, variables);
  if (visible.gpus.empty()) {
    return Annotate(NoneVisible(gpus, visible, variables), absl::StrCat("--gpu ", selector));
  }
  if (selector == "visible" || selector == "all") return visible;
  HPO_ASSIGN_OR_RETURN(GpuState gpu, SelectOne(gpus, visible, variables, selector));
  visible.gpus = {std::move(gpu)};
  return visible;
}

}  // namespace hpo::agent
