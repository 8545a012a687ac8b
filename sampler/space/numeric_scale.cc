#include "sampler/space/numeric_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

// From here on a cell is so narrow that its mass is its width times the density.
constexpr double kMaxGridValues = 0x1.0p30;

// Room for rounding in the number of steps, as in common/space/search_space.cc.
constexpr double kGridTolerance = 1e-9;

double LastIndex(const FloatDomain& domain) {
  return std::floor((domain.high - domain.low) / *domain.step + kGridTolerance);
}

double GridValue(const FloatDomain& domain, double index) {
  // The last of 0.1, 0.2, ... may be more than the high end by a rounding.
  return std::min(domain.low + index * *domain.step, domain.high);
}

ParamValue Nearest(const FloatDomain& domain, double value) {
  if (!domain.step.has_value()) return std::clamp(value, domain.low, domain.high);
  const double index = std::round((value - domain.low) / *domain.step);
  return GridValue(domain, std::clamp(index, 0.0, LastIndex(domain)));
}

ParamValue Nearest(const IntDomain& domain, double value) {
  const int64_t last_index = (domain.high - domain.low) / domain.step;
  const double index = std::floor(
      (value - static_cast<double>(domain.low)) / static_cast<double>(domain.step) + 0.5);
  const double clamped = std::clamp(index, 0.0, static_cast<double>(last_index));
  return domain.low + static_cast<int64_t>(clamped) * domain.step;
}

ParamValue Draw(const CategoricalDomain& domain, Rng& rng) {
  return domain.choices[rng.Below(domain.choices.size())];
}

ParamValue Draw(const FloatDomain& domain, Rng& rng) {
  if (domain.step.has_value()) {
    const double index =
        static_cast<double>(rng.Below(static_cast<uint64_t>(LastIndex(domain)) + 1));
    return GridValue(domain, index);
  }
  return Nearest(domain, NumericScale(domain).ValueAt(rng.Uniform()));
}

ParamValue Draw(const IntDomain& domain, Rng& rng) {
  if (domain.log && domain.low < domain.high) {
    return Nearest(domain, NumericScale(domain).ValueAt(rng.Uniform()));
  }
  const uint64_t num_values = static_cast<uint64_t>((domain.high - domain.low) / domain.step) + 1;
  return domain.low + static_cast<int64_t>(rng.Below(num_values)) * domain.step;
}

// The index of `part` among `count` equal parts.
uint64_t PartIndex(double part, uint64_t count) {
  return std::min(static_cast<uint64_t>(part * static_cast<double>(count)), count - 1);
}

ParamValue AtPart(const CategoricalDomain& domain, double part) {
  return domain.choices[PartIndex(part, domain.choices.size())];
}

ParamValue AtPart(const FloatDomain& domain, double part) {
  if (!domain.step.has_value()) return Nearest(domain, NumericScale(domain).ValueAt(part));
  const uint64_t count = static_cast<uint64_t>(LastIndex(domain)) + 1;
  return GridValue(domain, static_cast<double>(PartIndex(part, count)));
}

ParamValue AtPart(const IntDomain& domain, double part) {
  if (domain.log && domain.low < domain.high) {
    return Nearest(domain, NumericScale(domain).ValueAt(part));
  }
  const uint64_t count = static_cast<uint64_t>((domain.high - domain.low) / domain.step) + 1;
  return domain.low + static_cast<int64_t>(PartIndex(part, count)) * domain.step;
}

}  // namespace

NumericScale::NumericScale(double low, double high, double half_step, bool log)
    : low_(std::max(low - half_step, -kLargest)),
      high_(std::min(high + half_step, kLargest)),
      half_step_(half_step),
      log_(log),
      grid_(half_step > 0.0 && (high - low) / (2.0 * half_step) < kMaxGridValues) {
  if (log_) {
    low_ = hpo::sampler::Log(low_);
    high_ = hpo::sampler::Log(high_);
  }
  if (!std::isfinite(high_ - low_)) shrink_ = 0.25;
}

NumericScale::NumericScale(const FloatDomain& domain)
    : NumericScale(domain.low, LastValue(domain), domain.step.value_or(0.0) / 2.0, domain.log) {}

NumericScale::NumericScale(const IntDomain& domain)
    : NumericScale(static_cast<double>(domain.low), static_cast<double>(LastValue(domain)),
                   static_cast<double>(domain.step) / 2.0, domain.log) {}

NumericScale NumericScale::Of(const Domain& domain) {
  if (const auto* range = std::get_if<FloatDomain>(&domain)) return NumericScale(*range);
  return NumericScale(std::get<IntDomain>(domain));
}

NumericScale NumericScale::Log(double low, double high) {
  return NumericScale(low, high, 0.0, true);
}

double NumericScale::Position(double value) const {
  const double low = low_ * shrink_;
  const double width = high_ * shrink_ - low;
  const double transformed = (log_ ? hpo::sampler::Log(std::max(value, 0.0)) : value) * shrink_;
  return width > 0.0 ? std::clamp((transformed - low) / width, 0.0, 1.0) : 0.0;
}

Coordinate NumericScale::At(double value) const {
  Coordinate result{.present = true, .at = Position(value), .cell = {}};
  if (grid_) result.cell = {Position(value - half_step_), Position(value + half_step_)};
  return result;
}

double NumericScale::ValueAt(double position) const {
  const double low = low_ * shrink_;
  const double transformed = (low + position * (high_ * shrink_ - low)) / shrink_;
  return log_ ? Exp(transformed) : transformed;
}

Interval NumericScale::Covering(double low, double high) const {
  return {Position(low - half_step_), Position(high + half_step_)};
}

double LastValue(const FloatDomain& domain) {
  return domain.step.has_value() ? GridValue(domain, LastIndex(domain)) : domain.high;
}

int64_t LastValue(const IntDomain& domain) {
  return domain.low + (domain.high - domain.low) / domain.step * domain.step;
}

ParamValue NearestValue(const Domain& domain, double value) {
  if (const FloatDomain* real = std::get_if<FloatDomain>(&domain)) return Nearest(*real, value);
  return Nearest(std::get<IntDomain>(domain), value);
}

ParamValue DrawUniform(const Domain& domain, Rng& rng) {
  return std::visit([&](const auto& held) { return Draw(held, rng); }, domain);
}

ParamValue ValueAtPart(const Domain& domain, double part) {
  return std::visit([&](const auto& held) { return AtPart(held, part); }, domain);
}

}  // namespace hpo::sampler
