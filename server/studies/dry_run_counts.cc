#include "server/studies/dry_run_counts.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace hpo::server {
namespace {

absl::Duration MedianOf(std::vector<absl::Duration> times) {
  if (times.empty()) return absl::ZeroDuration();
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

std::optional<DryRunCounts> CountDryRuns(std::span<const DryRunRecord> dry_runs, TrialTimes times) {
  DryRunCounts counts;
  for (const DryRunRecord& dry_run : dry_runs) {
    if (dry_run.position > 0) continue;  // another GPU's row of the same dry run
    ++counts.made;
    counts.took += dry_run.took;
    if (dry_run.refused) ++counts.refused;
    if (dry_run.need.state == PreflightState::kUncertain) ++counts.uncertain;
    if (dry_run.need.state == PreflightState::kFailed) ++counts.failed;
  }
  if (counts.made == 0) return std::nullopt;
  const bool any_oom = !times.to_oom.empty();
  counts.saved =
      counts.refused * MedianOf(any_oom ? std::move(times.to_oom) : std::move(times.to_report));
  return counts;
}

}  // namespace hpo::server
