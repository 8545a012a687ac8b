// Tested by tests/sampler/space/coded_space_test.cc.
#include "sampler/space/parameter_codes.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hpo::sampler {
namespace {

// Positions are precomputed for grids of at most this number of values.
constexpr double kMostPositions = 4096.0;

double LastCode(const Domain& domain) {
  if (const auto* choices = std::get_if<CategoricalDomain>(&domain)) {
    return static_cast<double>(choices->choices.size()) - 1.0;
  }
  if (const auto count = NumValues(domain); count.has_value()) {
    return static_cast<double>(*count - 1);
  }
  const FloatDomain& real = std::get<FloatDomain>(domain);
  return real.low < real.high ? 1.0 : 0.0;
}

}  // namespace

bool AllowedCodes::Contains(double code) const {
  if (choices.empty()) return code >= low && code <= high;
  return std::find(choices.begin(), choices.end(), code) != choices.end();
}

ParameterCodes::ParameterCodes(const Domain& domain) : domain_(&domain), last_(LastCode(domain)) {
  if (std::holds_alternative<CategoricalDomain>(domain)) return;
  scale_ = NumericScale::Of(domain);
  kind_ = NumValues(domain).has_value() ? Kind::kGrid : Kind::kContinuous;
  if (kind_ == Kind::kContinuous || last_ >= kMostPositions) return;
  std::vector<double> positions;
  for (double code = 0.0; code <= last_; code += 1.0) positions.push_back(Position(code));
  positions_ = std::move(positions);
}

double ParameterCodes::CodeOf(const ParamValue& value) const {
  if (const auto* domain = std::get_if<CategoricalDomain>(domain_)) {
    const auto found = std::find(domain->choices.begin(), domain->choices.end(), value);
    if (found == domain->choices.end()) return kUnknownChoice;
    return static_cast<double>(found - domain->choices.begin());
  }
  if (const auto* integers = std::get_if<IntDomain>(domain_)) {
    return static_cast<double>((std::get<int64_t>(value) - integers->low) / integers->step);
  }
  const FloatDomain& real = std::get<FloatDomain>(*domain_);
  const double number = std::get<double>(value);
  if (real.step.has_value()) return std::round((number - real.low) / *real.step);
  return scale_->At(number).at;
}

ParamValue ParameterCodes::ValueOf(double code) const {
  if (const auto* choices = std::get_if<CategoricalDomain>(domain_)) {
    return choices->choices[static_cast<size_t>(code)];
  }
  if (const auto* integers = std::get_if<IntDomain>(domain_)) {
    return integers->low + static_cast<int64_t>(code) * integers->step;
  }
  const FloatDomain& real = std::get<FloatDomain>(*domain_);
  if (real.step.has_value()) return std::min(real.low + code * *real.step, real.high);
  return scale_->ValueAt(code);
}

double ParameterCodes::Position(double code) const {
  if (kind_ == Kind::kContinuous) return code;
  if (!positions_.empty()) return positions_[static_cast<size_t>(code)];
  return scale_->At(*AsNumber(ValueOf(code))).at;
}

double ParameterCodes::Draw(const AllowedCodes& allowed, Rng& rng) const {
  if (!allowed.choices.empty()) return allowed.choices[rng.Below(allowed.choices.size())];
  if (kind_ == Kind::kContinuous) {
    return allowed.low + rng.Uniform() * (allowed.high - allowed.low);
  }
  const auto* integers = std::get_if<IntDomain>(domain_);
  if (integers == nullptr || !integers->log || allowed.low == allowed.high) {
    return allowed.low +
           static_cast<double>(rng.Below(static_cast<uint64_t>(allowed.high - allowed.low) + 1));
  }
  const Interval range =
      scale_->Covering(*AsNumber(ValueOf(allowed.low)), *AsNumber(ValueOf(allowed.high)));
  const double position = range.low + rng.Uniform() * (range.high - range.low);
  const ParamValue value = NearestValue(*integers, scale_->ValueAt(position));
  return std::clamp(CodeOf(value), allowed.low, allowed.high);
}

}  // namespace hpo::sampler
