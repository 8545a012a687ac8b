#include "sampler/space/grid_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hpo::sampler {

std::optional<double> GridWalk::CodeAfter(size_t parameter, bool first) const {
  const double now = codes_[parameter];
  if (!space_.space().parameters[parameter].modelled || !space_.Active(parameter, codes_)) {
    if (!first) return std::nullopt;
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::optional<AllowedCodes> allowed = space_.Allowed(parameter, codes_);
  if (!allowed.has_value()) return std::nullopt;
  if (!allowed->choices.empty()) {
    const auto& choices = allowed->choices;
    const auto next =
        first ? choices.begin() : std::upper_bound(choices.begin(), choices.end(), now);
    if (next == choices.end()) return std::nullopt;
    return *next;
  }
  const double next = first ? allowed->low : now + 1.0;
  if (next > allowed->high) return std::nullopt;
  return next;
}

std::optional<size_t> GridWalk::Step(size_t end) {
  for (size_t i = end; i-- > 0;) {
    const std::optional<double> next = CodeAfter(i, /*first=*/false);
    if (!next.has_value()) continue;
    codes_[i] = *next;
    return i + 1;
  }
  return std::nullopt;
}

bool GridWalk::Next() {
  std::optional<size_t> from = begun_ ? Step(codes_.size()) : 0;
  begun_ = true;
  while (from.has_value() && *from < codes_.size()) {
    const std::optional<double> first = CodeAfter(*from, /*first=*/true);
    if (first.has_value()) codes_[*from] = *first;
    from = first.has_value() ? *from + 1 : Step(*from);
  }
  return from.has_value();
}

}  // namespace hpo::sampler
