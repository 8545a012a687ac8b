#include "sampler/gp/surrogate/input_space.h"

#include <algorithm>
#include <cmath>

#include "sampler/space/model_view.h"

namespace hpo::sampler {
namespace {

constexpr double kInactivePosition = 0.5;
constexpr double kInactiveChoice = -2.0;

}  // namespace

InputSpace::InputSpace(const CodedSpace& space, ModelView view)
    : space_(space), continuous_(space.size()) {
  const std::vector<Parameter>& parameters = space.space().parameters;
  if (view == ModelView::kQuality) pair_ = FindEffectiveBatch(space.space());
  if (pair_.has_value()) {
    pair_scale_ = EffectiveBatchScale(space.space(), *pair_);
    first_values_ = *PositiveIntegers(parameters[pair_->first].domain);
    second_values_ = *PositiveIntegers(parameters[pair_->second].domain);
    axes_.push_back({AxisKind::kEffectiveBatch, pair_->first});
    AddActivityOf(pair_->first);
  }
  for (size_t i = 0; i < space.size(); ++i) {
    const bool in_pair = pair_.has_value() && (i == pair_->first || i == pair_->second);
    if (!parameters[i].modelled || space.constant(i) || in_pair) continue;
    if (space.kind(i) == CodedSpace::Kind::kChoice) {
      axes_.push_back({AxisKind::kChoice, i});
      continue;
    }
    if (space.kind(i) == CodedSpace::Kind::kContinuous) continuous_[i] = axes_.size();
    axes_.push_back({AxisKind::kPosition, i});
    AddActivityOf(i);
  }
}

void InputSpace::AddActivityOf(size_t parameter) {
  const std::vector<Parameter>& parameters = space_.space().parameters;
  if (parameters[parameter].when.empty()) return;
  const bool known = std::any_of(axes_.begin(), axes_.end(), [&](const Axis& axis) {
    return axis.kind == AxisKind::kActivity &&
           parameters[axis.parameter].when == parameters[parameter].when;
  });
  if (!known) axes_.push_back({AxisKind::kActivity, parameter});
}

std::vector<double> InputSpace::Point(const Codes& codes) const {
  std::vector<double> point;
  point.reserve(axes_.size());
  for (const Axis& axis : axes_) point.push_back(Coordinate(axis, codes));
  return point;
}

double InputSpace::Coordinate(const Axis& axis, const Codes& codes) const {
  const double code = codes[axis.parameter];
  const bool active = !std::isnan(code);
  switch (axis.kind) {
    case AxisKind::kActivity:
      return active ? 1.0 : 0.0;
    case AxisKind::kChoice:
      return active ? code : kInactiveChoice;
    case AxisKind::kPosition:
      return active ? space_.Position(axis.parameter, code) : kInactivePosition;
    case AxisKind::kEffectiveBatch: {
      const double second = codes[pair_->second];
      // An unknown choice has no product either.
      if (!active || code < 0.0 || std::isnan(second) || second < 0.0) return kInactivePosition;
      const int64_t product =
          first_values_[static_cast<size_t>(code)] * second_values_[static_cast<size_t>(second)];
      return pair_scale_->At(static_cast<double>(product)).at;
    }
  }
  return kInactivePosition;
}

}  // namespace hpo::sampler
