#include "memory/need/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

namespace hpo::memory {
namespace {

constexpr double kColdStart = 0.03;

// Inclusive, largest first.
struct BandRange {
  NeedBand band;
  Bytes low;
  Bytes high;
};
constexpr BandRange kBands[] = {
    {NeedBand::kAbove10GiB, GiB(10) + Bytes{1}, Bytes{INT64_MAX}},
    {NeedBand::kFrom2To10GiB, GiB(2), GiB(10)},
    {NeedBand::kBelow2GiB, Bytes{INT64_MIN}, GiB(2) - Bytes{1}},
};

// nullopt where nothing was reported or predicted.
std::optional<double> Score(Bytes actual, Bytes predicted) {
  if (actual.count <= 0 || predicted.count <= 0) return std::nullopt;
  return static_cast<double>(actual.count) / static_cast<double>(predicted.count) - 1.0;
}

double KthSmallest(const std::deque<double>& scores, size_t k) {
  std::vector<double> sorted(scores.begin(), scores.end());
  const auto kth = sorted.begin() + static_cast<ptrdiff_t>(k - 1);
  std::nth_element(sorted.begin(), kth, sorted.end());
  return *kth;
}

}  // namespace

NeedBand BandOf(Bytes needed) {
  return std::find_if(std::begin(kBands), std::end(kBands),
                      [needed](const BandRange& range) { return needed >= range.low; })
      ->band;
}

ResidualClass ClassOf(const MemoryEstimate& estimate, absl::string_view device_kind) {
  return {.device_kind = std::string(device_kind), .band = BandOf(estimate.needed_limit)};
}

std::optional<double> ExactScore(const MemoryEstimate& predicted, const MemoryReport& report) {
  return std::max({Score(report.live_peak, predicted.live_peak),
                   Score(report.reserved_peak, predicted.reserved_peak),
                   Score(report.device_peak, predicted.reserved_peak + predicted.base)});
}

std::optional<double> CensoredScore(const MemoryEstimate& predicted, Bytes limit) {
  if (limit < predicted.needed_limit || predicted.needed_limit.count <= 0) return std::nullopt;
  return kNeedBeyondLimit * static_cast<double>(limit.count) /
             static_cast<double>(predicted.needed_limit.count) -
         1.0;
}

void MarginTable::Observe(const Residual& residual) {
  if (!std::isfinite(residual.score)) return;
  const double cold_start = ColdStart(residual.residual_class.device_kind);
  Evidence& evidence =
      classes_
          .try_emplace(residual.residual_class,
                       Evidence{.scores = {}, .alpha = options_.alpha, .factor = cold_start})
          .first->second;
  const bool exceeded = residual.score > evidence.factor;
  // A bound below the factor does not say whether the factor held.
  if (exceeded || !residual.censored) {
    const double error = exceeded ? 1.0 : 0.0;
    evidence.alpha = std::clamp(evidence.alpha + options_.adaptation * (options_.alpha - error),
                                std::min(options_.smallest_alpha, options_.alpha), options_.alpha);
  }
  if (residual.censored) {
    evidence.scores.push_back(std::max(residual.score, evidence.factor));
  } else {
    evidence.scores.push_back(residual.score);
    while (evidence.scores.size() > kMaxScores) evidence.scores.pop_front();
  }
  evidence.factor = FactorOf(evidence, cold_start);
}

double MarginTable::FactorOf(const Evidence& evidence, double cold_start) {
  const std::deque<double>& scores = evidence.scores;
  const double n = static_cast<double>(scores.size());
  const double k = std::ceil((n + 1.0) * (1.0 - evidence.alpha));
  const double by_rank =
      k <= n ? KthSmallest(scores, static_cast<size_t>(k))
             : std::max(cold_start, *std::max_element(scores.begin(), scores.end()));
  const size_t num_recent = std::min(scores.size(), kRecentScores);
  const double recent =
      *std::max_element(scores.end() - static_cast<ptrdiff_t>(num_recent), scores.end());
  return std::max({0.0, by_rank, recent});
}

double MarginTable::Factor(const ResidualClass& residual_class) const {
  const auto found = classes_.find(residual_class);
  return found == classes_.end() ? ColdStart(residual_class.device_kind) : found->second.factor;
}

double MarginTable::LargestFactor(absl::string_view device_kind, Bytes need) const {
  double largest = 0.0;
  for (const BandRange& range : kBands) {
    if (range.low > need) continue;
    largest =
        std::max(largest, Factor({.device_kind = std::string(device_kind), .band = range.band}));
  }
  return largest;
}

Bytes MarginTable::LargestNeed(absl::string_view device_kind, Bytes usable, Bytes bound) const {
  ResidualClass of{.device_kind = std::string(device_kind)};
  for (const BandRange& range : kBands) {
    of.band = range.band;
    const double within = static_cast<double>(usable.count) / (1.0 + Factor(of));
    const Bytes need = std::min({Bytes{static_cast<int64_t>(within)}, range.high, bound});
    if (need >= range.low) return std::max(Bytes{}, need);
  }
  return Bytes{};
}

double MarginTable::ColdStart(absl::string_view device_kind) {
  return device_kind == "cpu" ? 0.0 : kColdStart;
}

Bytes WithMargin(Bytes needed, double factor) {
  const double margin = std::ceil(static_cast<double>(needed.count) * std::max(0.0, factor));
  const double room = static_cast<double>(INT64_MAX) - static_cast<double>(needed.count);
  if (margin >= room) return Bytes{INT64_MAX};
  return needed + Bytes{static_cast<int64_t>(margin)};
}

}  // namespace hpo::memory
