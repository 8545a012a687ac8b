#include "sampler/pruners/asha_pruner.h"

#include <algorithm>

#include "sampler/pruners/reports.h"
#include "sampler/pruners/successive_halving.h"

namespace hpo::sampler {

std::optional<PruneDecision> AshaPruner::Decide(const History& history, TrialNumber trial) const {
  constexpr int64_t kDefaultFactor = 4;
  const HistoryTrial* reporting = FindReporting(history, trial);
  if (reporting == nullptr) return std::nullopt;
  std::optional<int64_t> min_resource;
  if (spec_.min_resource) min_resource = ProgressAfter(*reporting, *spec_.min_resource);
  if (!min_resource.has_value()) {
    const std::optional<int64_t> longest = LongestCompleted(history, *reporting);
    if (!longest.has_value()) return std::nullopt;
    min_resource = std::max<int64_t>(*longest / 100, 1);
  }
  const HalvingOptions options{
      .min_resource = *min_resource,
      .reduction_factor = spec_.reduction_factor.value_or(kDefaultFactor),
      .skipped_rungs = spec_.min_early_stopping_rate,
      .bootstrap_count = spec_.bootstrap_count,
  };
  std::optional<PruneDecision> stop =
      DecideHalving(history, trial, options, direction_, [](TrialNumber) { return true; });
  if (stop.has_value()) stop->pruner = "asha";
  return stop;
}

}  // namespace hpo::sampler
