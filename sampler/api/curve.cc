#include "sampler/api/curve.h"

#include <algorithm>
#include <cmath>

namespace hpo::sampler {

Curve::Curve(Values values) : values_(std::move(values)) {
  int64_t before = values_.empty() ? 0 : values_.begin()->first;
  for (const auto& [step, value] : values_) Take(step - std::exchange(before, step), value);
}

bool Curve::Add(int64_t step, double value) {
  const int64_t before = values_.empty() ? step : values_.rbegin()->first;
  const bool last = values_.empty() || before < step;
  if (last) {
    values_.emplace_hint(values_.end(), step, value);
    Take(step - before, value);
    return true;
  }
  if (!values_.emplace(step, value).second) return false;
  *this = Curve(std::move(values_));
  return true;
}

void Curve::Take(int64_t gap, double value) {
  widest_gap_ = std::max(widest_gap_, gap);
  if (std::isnan(best_) || value < best_) best_ = value;
  all_finite_ = all_finite_ && std::isfinite(value);
  sum_ += value;
}

}  // namespace hpo::sampler
