#include "common/device/visible_gpus.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"

namespace hpo {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

// The GPU that a MIG device is a part of, or the GPU itself.
const std::string& WholeGpu(const GpuState& gpu) {
  return gpu.parent_uuid.empty() ? gpu.uuid : gpu.parent_uuid;
}

bool IsNumber(absl::string_view entry) {
  return !entry.empty() && std::all_of(entry.begin(), entry.end(), absl::ascii_isdigit);
}

// nullptr: it names none, or begins the UUIDs of several.
const GpuState* FindEntry(std::span<const GpuState> gpus, absl::string_view entry) {
  const GpuState* found = nullptr;
  const bool is_mig = absl::StartsWith(entry, "MIG-");
  int64_t number = -1;
  const bool by_number = IsNumber(entry) && absl::SimpleAtoi(entry, &number);
  if (!by_number && !is_mig && !absl::StartsWith(entry, "GPU-")) return nullptr;
  for (const GpuState& gpu : gpus) {
    const bool named = by_number ? gpu.index == number
                                 : absl::StartsWith(is_mig ? gpu.uuid : WholeGpu(gpu), entry);
    if (!named) continue;
    if (found == nullptr) {
      found = &gpu;
    } else if (is_mig || WholeGpu(gpu) != WholeGpu(*found)) {
      return nullptr;
    }
  }
  return found;
}

bool AreAlike(std::span<const GpuState> gpus) {
  return std::all_of(gpus.begin(), gpus.end(),
                     [&](const GpuState& gpu) { return gpu.name == gpus.front().name; });
}

}  // namespace

VisibilityVariables OwnVisibilityVariables() {
  return {.visible = Variable(kVisibleGpusVariable), .order = Variable("CUDA_DEVICE_ORDER")};
}

VisibleGpus SelectVisible(std::span<const GpuState> gpus, const VisibilityVariables& variables) {
  VisibleGpus visible;
  if (!variables.visible) {
    visible.gpus.assign(gpus.begin(), gpus.end());
    return visible;
  }
  bool by_number = false;
  for (absl::string_view entry : absl::StrSplit(*variables.visible, ',')) {
    entry = absl::StripAsciiWhitespace(entry);
    const GpuState* const gpu = FindEntry(gpus, entry);
    if (gpu == nullptr) {
      // These two are how people write "none" and "no more".
      if (entry.empty() || entry == "-1") break;
      visible.warning =
          absl::StrCat(kVisibleGpusVariable, "=", *variables.visible, ": '", entry,
                       "' names no GPU of this machine, so that the list ends before ",
                       "it; there are: ", DescribeGpus(gpus));
      break;
    }
    by_number = by_number || IsNumber(entry);
    const bool twice = std::any_of(visible.gpus.begin(), visible.gpus.end(),
                                   [&](const GpuState& other) { return other.uuid == gpu->uuid; });
    if (twice) {
      return {.gpus = {},
              .warning = absl::StrCat(kVisibleGpusVariable, "=", *variables.visible, ": ", entry,
                                      " is there twice, so that CUDA sees no GPU")};
    }
    visible.gpus.push_back(*gpu);
  }
  if (visible.warning.empty() && by_number && variables.order != "PCI_BUS_ID" && !AreAlike(gpus)) {
    visible.warning = absl::StrCat(
        kVisibleGpusVariable, "=", *variables.visible, " is read as numbers of nvidia-smi; as the ",
        "GPUs of this machine differ, CUDA programs count in the same way only with ",
        "CUDA_DEVICE_ORDER=PCI_BUS_ID");
  }
  return visible;
}

absl::StatusOr<VisibleGpus> ListVisible(GpuProbe& probe) {
  HPO_ASSIGN_OR_RETURN(const std::vector<GpuState> gpus, probe.List());
  return SelectVisible(gpus, OwnVisibilityVariables());
}

}  // namespace hpo
