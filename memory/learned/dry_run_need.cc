#include "memory/learned/dry_run_need.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace hpo::memory {
namespace {
double Env(const char* n, double d) { const char* v = std::getenv(n); return v ? std::atof(v) : d; }
const double kFactorUp = Env("FU", 1.3), kFactorDown = Env("FD", 1.3), kFloorUp = Env("LU", 0.03), kFloorDown = Env("LD", 0.03);
const double kOwn = Env("OWN", 0.005), kComp = Env("COMP", 0.01), kQuant = Env("Q", 0.25);
const size_t kFew = static_cast<size_t>(Env("FEW", 8));
constexpr size_t kFolds = 8;

double Real(Bytes bytes) { return static_cast<double>(bytes.count); }
Bytes Whole(double bytes) {
  constexpr double kLargest = static_cast<double>(int64_t{1} << 62);
  return Bytes{static_cast<int64_t>(std::min(kLargest, std::ceil(bytes)))};
}
}  // namespace

DryRunNeed::DryRunNeed(const SearchSpace& space, const std::vector<std::string>& relevant,
                       std::span<const NeedObservation> seen,
                       std::span<const DryRunFinding> findings)
    : findings_(findings.begin(), findings.end()), terms_(space, relevant) {
  LearnOffset(seen);
  TakeKnown(seen);
  if (known_.size() < kFew) return;
  fit_.emplace(terms_, known_);
  directions_ = DirectionsOf(fit_->terms());
  LearnMargins(terms_);
  LearnContradiction();
}

void DryRunNeed::LearnOffset(std::span<const NeedObservation> seen) {
  std::vector<double> offsets;
  double least = 0.0, margin = 0.0;
  bool bounded = false;
  for (const DryRunFinding& finding : findings_) {
    margin = std::max(margin, Real(finding.margin));
    if (!finding.measured) continue;
    for (const NeedObservation& one : seen) {
      if (one.params != finding.params) continue;
      const double offset = Real(one.bytes) - Real(finding.required);
      if (one.censored) {
        least = bounded ? std::max(least, offset) : offset;
        bounded = true;
      } else if (!one.unmeasured) {
        offsets.push_back(offset);
      }
    }
  }
  offset_ = margin;
  if (!offsets.empty()) {
    const auto at = offsets.begin() + static_cast<ptrdiff_t>(kQuant * static_cast<double>(offsets.size() - 1));
    std::nth_element(offsets.begin(), at, offsets.end());
    offset_ = std::clamp(*at, -margin, margin);
    knows_offset_ = true;
  }
  if (bounded) offset_ = std::max(offset_, least);
}

void DryRunNeed::TakeKnown(std::span<const NeedObservation> seen) {
  for (const DryRunFinding& finding : findings_) {
    if (!finding.measured) continue;
    known_.push_back({terms_.PointOf(finding.params), std::max(1.0, Real(finding.required) + offset_)});
  }
  for (const NeedObservation& one : seen) {
    if (one.bytes.count <= 0) continue;
    KnownNeed need{terms_.PointOf(one.params), Real(one.bytes)};
    if (one.censored) {
      ooms_.push_back(std::move(need));
    } else {
      ran_.push_back(need);
      const bool dry_run = std::any_of(findings_.begin(), findings_.end(), [&](const DryRunFinding& f) { return f.measured && f.params == one.params; });
      if (!dry_run && !one.unmeasured) known_.push_back(std::move(need));
    }
  }
}

void DryRunNeed::LearnMargins(const NeedTerms& candidates) {
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<KnownNeed> others;
    for (size_t i = 0; i < known_.size(); ++i) {
      if (i % kFolds != fold) others.push_back(known_[i]);
    }
    const ProductFit without(candidates, others);
    for (size_t i = fold; i < known_.size(); i += kFolds) {
      const double predicted = without.Predict(known_[i].point);
      const double error = std::log(known_[i].bytes / predicted) /
                           std::sqrt(1.0 + without.Leverage(known_[i].point, predicted));
      above_ = std::max(above_, error);
      below_ = std::max(below_, -error);
    }
  }
  above_ = std::max(kFloorUp, kFactorUp * above_);
  below_ = std::max(kFloorDown, kFactorDown * below_);
}

void DryRunNeed::LearnContradiction() {
  for (const KnownNeed& small : known_) {
    for (const KnownNeed& large : known_) {
      if (small.bytes <= large.bytes || !NoLarger(small.point, large.point, directions_)) continue;
      contradiction_ = std::max(contradiction_, std::log(small.bytes / large.bytes));
    }
  }
  contradiction_ += kComp;
}

std::optional<LearnedFit> DryRunNeed::Decide(const ParamMap& params, Bytes usable) const {
  bool in_vain = false;
  for (const DryRunFinding& finding : findings_) {
    if (finding.params != params) continue;
    if (finding.measured) {
    const double needed = (Real(finding.required) + offset_) * (1.0 + kOwn);
      return LearnedFit{.fits = needed <= Real(usable), .expected = finding.required, .needed = Whole(needed)};
    }
    in_vain = true;
  }
  if (in_vain) return std::nullopt;
  if (!fit_) return LearnedFit{.sure = false};
  const NeedPoint point = terms_.PointOf(params);
  if (auto fit = AsNeighbours(point, usable)) return fit;
  return AsFitted(point, usable);
}

std::optional<LearnedFit> DryRunNeed::AsNeighbours(const NeedPoint& point, Bytes usable) const {
  const double by = std::exp(contradiction_);
  for (const KnownNeed& oom : ooms_) {
    if (oom.bytes >= Real(usable) && NoLarger(oom.point, point, directions_)) {
      return LearnedFit{.fits = false, .expected = Whole(fit_->Predict(point)), .needed = Whole(oom.bytes + 1)};
    }
  }
  for (const KnownNeed& known : known_) {
    if (known.bytes * by <= Real(usable) && NoLarger(point, known.point, directions_)) {
      return LearnedFit{.fits = true, .expected = Whole(fit_->Predict(point)), .needed = Whole(known.bytes * by)};
    }
    if (known.bytes > Real(usable) * by && NoLarger(known.point, point, directions_)) {
      return LearnedFit{.fits = false, .expected = Whole(fit_->Predict(point)), .needed = Whole(known.bytes)};
    }
  }
  return std::nullopt;
}

LearnedFit DryRunNeed::AsFitted(const NeedPoint& point, Bytes usable) const {
  const double predicted = fit_->Predict(point);
  const double reach = std::sqrt(1.0 + fit_->Leverage(point, predicted));
  const double most = predicted * std::exp(above_ * reach);
  const double least = predicted * std::exp(-below_ * reach);
  if (most <= Real(usable)) return {.fits = true, .expected = Whole(predicted), .needed = Whole(most)};
  if (least > Real(usable)) return {.fits = false, .expected = Whole(predicted), .needed = Whole(least)};
  return {.fits = true, .expected = Whole(predicted), .needed = {}, .sure = false};
}

}  // namespace hpo::memory
