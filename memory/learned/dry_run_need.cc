#include "memory/learned/dry_run_need.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "memory/need/calibration.h"

namespace hpo::memory {
namespace {

// Tuned on one half of the programs of dry_run_need_test.cc, checked on the other.
constexpr double kErrorFactor = 1.3;  // of the largest error
constexpr double kFewNeeds = 4.0;     // added to it, by the number of needs near the limit
constexpr double kFewNeedsMargin = 0.25;
constexpr double kLeastMargin = 0.03;
constexpr double kComparisonMargin = 0.01;
// Shares of the limit: a prediction that is too low is dangerous for needs from the first on, one
// that is too high for needs up to the second.
constexpr double kNearFromBelow = 0.7;
constexpr double kNearFromAbove = 1.4;
constexpr int kFewestOfChoice = 3;
constexpr size_t kFolds = 8;
constexpr double kOffsetQuantile = 0.25;
// What two runs of one configuration differ by, as the workspaces that libraries choose do.
constexpr double kOwnMargin = 64.0 * 1024.0 * 1024.0;

double RealOf(Bytes bytes) { return static_cast<double>(bytes.count); }

Bytes WholeOf(double bytes) {
  constexpr double kLargest = static_cast<double>(int64_t{1} << 62);
  return Bytes{static_cast<int64_t>(std::clamp(std::ceil(bytes), 0.0, kLargest))};
}

double OffsetOf(const DryRunEvidence& evidence) {
  double margin = 0.0;
  double least = -std::numeric_limits<double>::infinity();
  std::vector<double> offsets;
  for (const DryRunFinding& finding : evidence.findings) {
    if (!finding.measured) continue;
    margin = std::max(margin, RealOf(finding.margin));
    for (const NeedObservation& one : evidence.seen) {
      if (one.params != finding.params || one.unmeasured) continue;
      const double offset = RealOf(one.bytes) - RealOf(finding.required);
      if (!one.censored) {
        offsets.push_back(offset);
      } else if (offset <= 2.0 * margin) {  // else the error had another cause
        least = std::max(least, offset);
      }
    }
  }
  if (offsets.empty()) return std::max(margin, least);
  const double last = static_cast<double>(offsets.size() - 1);
  const auto quantile = offsets.begin() + static_cast<ptrdiff_t>(kOffsetQuantile * last);
  std::nth_element(offsets.begin(), quantile, offsets.end());
  return std::max(std::clamp(*quantile, -margin, margin), least);
}

}  // namespace

DryRunNeed::DryRunNeed(const SearchSpace& space, const std::vector<std::string>& relevant,
                       const DryRunEvidence& evidence)
    : findings_(evidence.findings.begin(), evidence.findings.end()),
      around_(RealOf(evidence.usable)),
      spare_(RealOf(evidence.spare)),
      offset_(OffsetOf(evidence)),
      terms_(space, relevant) {
  TakeKnown(evidence);
  if (known_.size() < kFewestKnown) return;
  fit_.emplace(terms_, known_);
  directions_ = DirectionsOf(fit_->terms());
  margins_ = CrossValidate();
  contradiction_ = LargestContradiction() + kComparisonMargin;
}

void DryRunNeed::TakeKnown(const DryRunEvidence& evidence) {
  for (const DryRunFinding& finding : findings_) {
    if (!finding.measured) continue;
    const double needed = std::max(1.0, RealOf(finding.required) + offset_);
    known_.push_back({terms_.PointOf(finding.params), needed});
  }
  for (const NeedObservation& one : evidence.seen) {
    if (one.bytes.count <= 0 || one.unmeasured) continue;
    const bool dry_run =
        std::any_of(findings_.begin(), findings_.end(), [&one](const DryRunFinding& finding) {
          return finding.measured && finding.params == one.params;
        });
    KnownNeed need{terms_.PointOf(one.params), RealOf(one.bytes)};
    if (one.censored) {
      ooms_.push_back(std::move(need));
    } else if (!dry_run) {
      known_.push_back(std::move(need));
    }
  }
}

bool DryRunNeed::IsNearLimitFromBelow(double bytes) const {
  return bytes > kNearFromBelow * around_;
}

bool DryRunNeed::IsNearLimitFromAbove(double bytes) const {
  return bytes < kNearFromAbove * around_;
}

DryRunNeed::Margins DryRunNeed::CrossValidate() const {
  Margins errors;
  double num_above = 1.0;
  double num_below = 1.0;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<KnownNeed> others;
    for (size_t i = 0; i < known_.size(); ++i) {
      if (i % kFolds != fold) others.push_back(known_[i]);
    }
    const ProductFit without(terms_, others);
    for (size_t i = fold; i < known_.size(); i += kFolds) {
      const auto& [point, bytes] = known_[i];
      const double predicted = without.Predict(point);
      const double reach = std::sqrt(1.0 + without.Leverage(point, predicted));
      const double error = std::log(bytes / predicted) / reach;
      if (IsNearLimitFromBelow(bytes)) {
        errors.above = std::max(errors.above, error);
        num_above += 1.0;
      }
      if (IsNearLimitFromAbove(bytes)) {
        errors.below = std::max(errors.below, -error);
        num_below += 1.0;
      }
    }
  }
  const auto margin = [](double error, double num_near) {
    const double scaled = (kErrorFactor + kFewNeeds / num_near) * error;
    return std::max(kLeastMargin, scaled) + kFewNeedsMargin / num_near;
  };
  return {.above = margin(errors.above, num_above), .below = margin(errors.below, num_below)};
}

double DryRunNeed::LargestContradiction() const {
  double largest = 0.0;
  for (const KnownNeed& a : known_) {
    for (const KnownNeed& b : known_) {
      if (a.bytes > b.bytes && NoLarger(a.point, b.point, directions_)) {
        largest = std::max(largest, std::log(a.bytes / b.bytes));
      }
    }
  }
  return largest;
}

std::optional<LearnedFit> DryRunNeed::Decide(const ParamMap& params, Bytes usable) const {
  bool in_vain = false;
  for (const DryRunFinding& finding : findings_) {
    if (finding.params != params) continue;
    in_vain = true;
    if (!finding.measured) continue;
    const double expected = RealOf(finding.required) + offset_;
    const double needed = expected + kOwnMargin;
    return LearnedFit{.fits = needed <= RealOf(usable) + spare_,
                      .expected = WholeOf(expected),
                      .needed = WholeOf(needed)};
  }
  if (in_vain) return std::nullopt;
  if (!fit_.has_value()) return LearnedFit{.sure = false};
  const NeedPoint point = terms_.PointOf(params);
  const std::optional<LearnedFit> neighbours = AsNeighbours(point, RealOf(usable));
  return neighbours.has_value() ? neighbours : AsFitted(point, RealOf(usable));
}

std::optional<LearnedFit> DryRunNeed::AsNeighbours(const NeedPoint& point, double usable) const {
  const double margin = std::exp(contradiction_);
  const Bytes expected = WholeOf(fit_->Predict(point));
  for (const KnownNeed& oom : ooms_) {
    const double need = kNeedBeyondLimit * oom.bytes;
    if (need <= usable * margin || !NoLarger(oom.point, point, directions_)) continue;
    return LearnedFit{.fits = false, .expected = expected, .needed = WholeOf(need)};
  }
  for (const KnownNeed& known : known_) {
    if (known.bytes * margin <= usable && NoLarger(point, known.point, directions_)) {
      return LearnedFit{
          .fits = true, .expected = expected, .needed = WholeOf(known.bytes * margin)};
    }
    if (known.bytes > (usable + spare_) * margin && NoLarger(known.point, point, directions_)) {
      return LearnedFit{.fits = false, .expected = expected, .needed = WholeOf(known.bytes)};
    }
  }
  return std::nullopt;
}

bool DryRunNeed::KnowsChoices(const NeedPoint& point, bool below) const {
  for (size_t i = 0; i < point.choices.size(); ++i) {
    int num_known = 0;
    bool any_near = false;
    for (const auto& [known, bytes] : known_) {
      if (known.choices[i] != point.choices[i]) continue;
      ++num_known;
      any_near = any_near || (below ? IsNearLimitFromAbove(bytes) : IsNearLimitFromBelow(bytes));
    }
    if (num_known < kFewestOfChoice || !any_near) return false;
  }
  return true;
}

bool DryRunNeed::GrowsWithin(const NeedPoint& point, double usable) const {
  return std::any_of(known_.begin(), known_.end(), [&](const KnownNeed& known) {
    if (known.point.choices != point.choices) return false;
    double most = known.bytes;
    for (size_t i = 0; i < directions_.size(); ++i) {
      const std::optional<double>& from = known.point.numbers[i];
      const std::optional<double>& to = point.numbers[i];
      if (from == to) continue;
      if (!from || !to || *from <= 0.0 || *to <= 0.0) return false;
      const double growth = *to / *from;
      if (directions_[i] != Direction::kShrinks) most *= std::max(1.0, growth);
      if (directions_[i] != Direction::kGrows) most *= std::max(1.0, 1.0 / growth);
    }
    return most <= usable;
  });
}

LearnedFit DryRunNeed::AsFitted(const NeedPoint& point, double usable) const {
  const double predicted = fit_->Predict(point);
  const double reach = std::sqrt(1.0 + fit_->Leverage(point, predicted));
  const double most = predicted * std::exp(margins_.above * reach);
  const double least = predicted * std::exp(-margins_.below * reach);
  LearnedFit answer{.fits = true, .expected = WholeOf(predicted), .needed = WholeOf(most)};
  if (most <= usable && KnowsChoices(point, /*below=*/false) && GrowsWithin(point, usable)) {
    return answer;
  }
  if (least > usable && KnowsChoices(point, /*below=*/true)) {
    answer.fits = false;
    answer.needed = WholeOf(least);
    return answer;
  }
  answer.sure = false;
  answer.needed = Bytes{};
  return answer;
}

}  // namespace hpo::memory
