// Tested by tests/worker/agent/device_choice_test.cc.
#include "worker/agent/device/select_gpu.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
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
  std::vector<GpuState> chosen;
  for (const std::string& one : std::vector<std::string>(absl::StrSplit(selector, ','))) {
    HPO_ASSIGN_OR_RETURN(GpuState gpu, SelectOne(gpus, visible, variables, one));
    const auto is_same = [&](const GpuState& other) { return other.uuid == gpu.uuid; };
    if (std::any_of(chosen.begin(), chosen.end(), is_same)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--gpu ", selector, ": expected each GPU once, got ", one, " again"));
    }
    chosen.push_back(std::move(gpu));
  }
  visible.gpus = std::move(chosen);
  return visible;
}

std::string UuidsOf(std::span<const GpuState> gpus) {
  return absl::StrJoin(
      gpus, ",", [](std::string* out, const GpuState& gpu) { absl::StrAppend(out, gpu.uuid); });
}

absl::StatusOr<std::vector<std::vector<GpuState>>> SetsOfGpus(std::span<const GpuState> gpus,
                                                              int size) {
  const auto per_set = static_cast<size_t>(size);
  if (gpus.size() < per_set) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected at least ", size,
        " GPUs, as each trial takes so many (--gpus-per-trial, or "
        "trainer.gpus of the study), got ",
        gpus.size(), ": ", DescribeGpus(gpus), "; give this worker more GPUs, or the study fewer"));
  }
  const bool has_mig = std::any_of(gpus.begin(), gpus.end(), [](const GpuState& gpu) {
    return absl::StartsWith(gpu.uuid, "MIG-");
  });
  if (per_set > 1 && has_mig) {
    return absl::FailedPreconditionError(absl::StrCat(
        "expected whole GPUs, as each trial takes ", size,
        " (--gpus-per-trial, or trainer.gpus of the study), got MIG devices: ", DescribeGpus(gpus),
        "; CUDA shows a process one MIG device alone"));
  }
  std::vector<std::vector<GpuState>> sets;
  for (size_t i = 0; i + per_set <= gpus.size(); i += per_set) {
    sets.emplace_back(gpus.begin() + static_cast<std::ptrdiff_t>(i),
                      gpus.begin() + static_cast<std::ptrdiff_t>(i + per_set));
  }
  return sets;
}

}  // namespace hpo::agent
