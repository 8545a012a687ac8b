// A need as a sum of products (learned_need.h says why), fitted to needs that are known.
// Immutable; safe from any thread.
#pragma once

#include <span>
#include <vector>

#include "memory/learned/nonnegative_least_squares.h"
#include "memory/need/need_terms.h"

namespace hpo::memory {

// Which way a need goes with a number.
enum class Direction { kGrows, kShrinks, kBoth };

// One value for each term at `point`, relative to what `scale` bytes would be.
std::vector<double> RelativeRow(const NeedTerms& terms, const NeedPoint& point, double scale);

// By number, as the terms go.
std::vector<Direction> DirectionsOf(const NeedTerms& terms);

// A prediction at such a leverage is none; larger ones count as this.
inline constexpr double kHighestLeverage = 100.0;

// A configuration and the bytes that it needs.
struct KnownNeed {
  NeedPoint point;
  double bytes = 0.0;
};

class ProductFit {
 public:
  // Non-negative least squares of relative errors over `candidates`. `known`: at least one, of more
  // than 0 bytes.
  ProductFit(const NeedTerms& candidates, std::span<const KnownNeed> known);

  // At least 1.
  double Predict(const NeedPoint& point) const;
  // Of the point, where it needs `bytes`: how far the fit reaches for it; 0 to 100.
  double Leverage(const NeedPoint& point, double bytes) const;
  const NeedTerms& terms() const { return terms_; }

 private:
  NeedTerms terms_;
  NonNegativeFit fit_;
};

// Whether `a` is no larger than `b` in anything, as `directions` say; another choice, or a number
// that only one of them has, is neither smaller nor larger.
bool NoLarger(const NeedPoint& a, const NeedPoint& b, const std::vector<Direction>& directions);

}  // namespace hpo::memory
