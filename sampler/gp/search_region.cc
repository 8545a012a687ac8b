// Tested by tests/sampler/gp/acquisition_test.cc.
#include "sampler/gp/search_region.h"

#include <algorithm>
#include <cmath>

#include "sampler/numeric/packet_math.h"

namespace hpo::sampler {
namespace {

// The distance of a local candidate, as a part of the axis, is at least e^-9.
constexpr double kNearest = -9.0;

}  // namespace

SearchRegion::SearchRegion(const CodedSpace& space, const SearchBox* box)
    : space_(&space), box_(box) {
  for (size_t i = 0; box_ != nullptr && i < space.size(); ++i) reach_.push_back(ReachOf(i));
}

// What the box leaves of the parameter. On a grid at least a step to either side.
AllowedCodes SearchRegion::ReachOf(size_t parameter) const {
  const double center = box_->center[parameter];
  AllowedCodes reach{center, center};
  const CodedSpace::Kind kind = space_->kind(parameter);
  if (std::isnan(center) || kind == CodedSpace::Kind::kChoice) return reach;
  if (kind == CodedSpace::Kind::kContinuous) {
    return {center - 0.5 * box_->side, center + 0.5 * box_->side};
  }
  const std::optional<AllowedCodes> all = space_->Allowed(parameter, box_->center);
  if (!all.has_value()) return reach;
  const double position = space_->Position(parameter, center);
  const auto in_box = [&](double code) {
    return all->Contains(code) &&
           std::abs(space_->Position(parameter, code) - position) <= 0.5 * box_->side;
  };
  // By doubling and then by halves, as far as the box goes.
  const auto furthest = [&](double sign) {
    double steps = 1.0;
    while (in_box(center + 2.0 * sign * steps)) steps *= 2.0;
    for (double step = 0.5 * steps; step >= 1.0; step /= 2.0) {
      if (in_box(center + sign * (steps + step))) steps += step;
    }
    return center + sign * steps;
  };
  return {furthest(-1.0), furthest(1.0)};
}

std::optional<AllowedCodes> SearchRegion::Allowed(size_t parameter, const Codes& codes) const {
  std::optional<AllowedCodes> allowed = space_->Allowed(parameter, codes);
  const bool number = space_->kind(parameter) != CodedSpace::Kind::kChoice;
  if (box_ == nullptr || !allowed.has_value() || !number) return allowed;
  const double low = std::max(allowed->low, reach_[parameter].low);
  const double high = std::min(allowed->high, reach_[parameter].high);
  if (low <= high) allowed = AllowedCodes{low, high};  // not where the center has no number
  return allowed;
}

// `center` with new choices by a chance of `new_choices`, numbers moved by `move`, but for the
// parameters that `keeps()` says, and with what is not modelled drawn again.
template <typename Keeps, typename Move>
Codes SearchRegion::Changed(const Codes& center, double new_choices, Rng& rng, Keeps keeps,
                            Move move) const {
  Codes codes = center;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (!space_->space().parameters[i].modelled) codes[i] = std::nan("");
    if (std::isnan(codes[i]) || space_->constant(i) || keeps()) continue;
    const std::optional<AllowedCodes> allowed = Allowed(i, codes);
    if (!allowed.has_value()) continue;
    if (space_->kind(i) == CodedSpace::Kind::kChoice) {
      if (rng.Uniform() < new_choices) codes[i] = std::nan("");
    } else {
      codes[i] = move(i, codes[i], *allowed);
    }
  }
  return codes;
}

Codes SearchRegion::Draw(Rng& rng) const {
  if (box_ == nullptr) return Codes(space_->size(), std::nan(""));
  return Changed(
      box_->center, 0.2, rng, [] { return false; },
      [&](size_t i, double, const AllowedCodes& allowed) {
        const double code = allowed.low + rng.Uniform() * (allowed.high - allowed.low);
        return space_->kind(i) == CodedSpace::Kind::kGrid ? std::round(code) : code;
      });
}

Codes SearchRegion::Near(const Codes& center, Rng& rng) const {
  const double distance = PortableExp(kNearest * rng.Uniform());
  const double share = rng.Uniform();
  return Changed(
      center, 0.3, rng, [&] { return rng.Uniform() > share; },
      [&](size_t i, double code, const AllowedCodes& allowed) {
        const double width = allowed.high - allowed.low;
        double moved = (2.0 * rng.Uniform() - 1.0) * distance * width;
        if (space_->kind(i) == CodedSpace::Kind::kGrid) {
          moved = moved < 0.0 ? std::floor(moved) : std::ceil(moved);
        }
        return std::clamp(code + moved, allowed.low, allowed.high);
      });
}

}  // namespace hpo::sampler
