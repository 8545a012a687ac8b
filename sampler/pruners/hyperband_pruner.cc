#include "sampler/pruners/hyperband_pruner.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "sampler/pruners/reports.h"
#include "sampler/pruners/successive_halving.h"

namespace hpo::sampler {
namespace {

// Polynomial 0x04C11DB7, reflected, as in ISO 3309 and zip files.
uint32_t Crc32(absl::string_view text) {
  uint32_t remainder = 0xFFFFFFFFu;
  for (const char byte : text) {
    remainder ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      remainder = (remainder >> 1) ^ ((remainder & 1u) != 0 ? 0xEDB88320u : 0u);
    }
  }
  return ~remainder;
}

}  // namespace

std::vector<int64_t> BracketWeights(int64_t min_resource, int64_t max_resource,
                                    int64_t reduction_factor) {
  const auto factor = static_cast<double>(reduction_factor);
  const double ratio = static_cast<double>(max_resource) / static_cast<double>(min_resource);
  const int64_t num_brackets =
      std::max<int64_t>(static_cast<int64_t>(std::floor(std::log(ratio) / std::log(factor))), 0) +
      1;
  std::vector<int64_t> weights;
  for (int64_t rungs = num_brackets; rungs >= 1; --rungs) {
    const double trials =
        static_cast<double>(num_brackets) * std::pow(factor, static_cast<double>(rungs - 1));
    weights.push_back(static_cast<int64_t>(std::ceil(trials / static_cast<double>(rungs))));
  }
  return weights;
}

int64_t BracketOf(const std::string& study, TrialNumber trial,
                  const std::vector<int64_t>& weights) {
  int64_t total = 0;
  for (const int64_t weight : weights) total += weight;
  int64_t rest = static_cast<int64_t>(Crc32(absl::StrCat(study, "_", trial.value))) % total;
  int64_t bracket = 0;
  while (rest >= weights[static_cast<size_t>(bracket)]) {
    rest -= weights[static_cast<size_t>(bracket)];
    ++bracket;
  }
  return bracket;
}

std::optional<PruneDecision> HyperbandPruner::Decide(const History& history,
                                                     TrialNumber trial) const {
  constexpr int64_t kDefaultFactor = 3;
  const HistoryTrial* reporting = FindReporting(history, trial);
  if (reporting == nullptr) return std::nullopt;
  std::optional<int64_t> max_resource;
  if (spec_.max_resource) max_resource = ProgressAfter(*reporting, *spec_.max_resource);
  if (!max_resource.has_value()) {
    const std::optional<int64_t> longest = LongestCompleted(history, *reporting);
    if (!longest.has_value()) return std::nullopt;
    max_resource = *longest + 1;
  }
  // A step, or a hundredth of a trial: it may be shorter than an epoch.
  int64_t min_resource = reporting->by_epoch ? std::max<int64_t>(*max_resource / 100, 1) : 1;
  if (spec_.min_resource) min_resource = ProgressAfter(*reporting, *spec_.min_resource);
  const int64_t factor = spec_.reduction_factor.value_or(kDefaultFactor);
  const std::vector<int64_t> weights = BracketWeights(min_resource, *max_resource, factor);
  const int64_t bracket = BracketOf(study_, trial, weights);
  const HalvingOptions options{
      .min_resource = min_resource,
      .reduction_factor = factor,
      .skipped_rungs = bracket,
      .bootstrap_count = spec_.bootstrap_count,
  };
  std::optional<PruneDecision> stop = DecideHalving(
      history, trial, options, direction_,
      [&](TrialNumber other) { return BracketOf(study_, other, weights) == bracket; });
  if (!stop.has_value()) return std::nullopt;
  stop->pruner = "hyperband";
  stop->why = absl::StrCat("bracket ", bracket, ", ", stop->why);
  return stop;
}

}  // namespace hpo::sampler
