#include "sampler/curve.h"

#include <cmath>

namespace hpo {

Curve::Curve(Values values) : values_(std::move(values)) {
  for (const auto& [step, value] : values_) Take(value);
}

bool Curve::Add(int64_t step, double value) {
  const bool last = values_.empty() || values_.rbegin()->first < step;
  if (last) {
    values_.emplace_hint(values_.end(), step, value);
    Take(value);
    return true;
  }
  if (!values_.emplace(step, value).second) return false;
  *this = Curve(std::move(values_));
  return true;
}

void Curve::Take(double value) {
  if (std::isnan(best_) || value < best_) best_ = value;
  all_finite_ = all_finite_ && std::isfinite(value);
  sum_ += value;
}

}  // namespace hpo
