#include "sampler/tpe/model_space.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampler/space/model_view.h"

namespace hpo::sampler {
namespace {

constexpr Interval kWholeRange{0.0, 1.0};

// What the marginal of a number counts for where no parameter has conditions. The joint density
// knows a number's neighbourhood already, of a choice only what equals it, and components that lack
// an axis say nothing there: of those the marginals count in full. Measured: docs/adr/005.
constexpr double kMarginalOfNumbers = 0.3;

bool HasOneValue(const Domain& domain) {
  if (const FloatDomain* real = std::get_if<FloatDomain>(&domain)) {
    return LastValue(*real) <= real->low;
  }
  return NumValues(domain) == 1;
}

ParzenAxis NumericAxis(const NumericScale& scale) {
  return {.kind = scale.grid() ? ParzenAxis::Kind::kGrid : ParzenAxis::Kind::kContinuous};
}

// Indices in `all` of the choices of `some`.
std::vector<size_t> IndicesIn(const CategoricalDomain& all, const CategoricalDomain& some) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < all.choices.size(); ++i) {
    const auto found = std::find(some.choices.begin(), some.choices.end(), all.choices[i]);
    if (found != some.choices.end()) indices.push_back(i);
  }
  return indices;
}

// Positions on `scale` that become a value of `allowed`, a part of the scale's domain.
Interval PositionsOf(const NumericScale& scale, const Domain& allowed) {
  if (const FloatDomain* real = std::get_if<FloatDomain>(&allowed)) {
    return scale.Covering(real->low, LastValue(*real));
  }
  const IntDomain& integers = std::get<IntDomain>(allowed);
  return scale.Covering(static_cast<double>(integers.low),
                        static_cast<double>(LastValue(integers)));
}

}  // namespace

ModelSpace::ModelSpace(const SearchSpace& space, ModelView view, Grouping grouping)
    : space_(space), grouping_(grouping) {
  roles_.resize(space.parameters.size());
  if (view == ModelView::kQuality) pair_ = FindEffectiveBatch(space);
  if (pair_.has_value()) {
    pair_scale_ = EffectiveBatchScale(space, *pair_);
    pair_axis_ = AddAxis(NumericAxis(*pair_scale_), space.parameters[pair_->first]);
  }
  for (size_t i = 0; i < roles_.size(); ++i) {
    const Parameter& parameter = space.parameters[i];
    roles_[i].narrowed =
        std::any_of(space.narrowings.begin(), space.narrowings.end(),
                    [&](const Narrowing& narrowing) { return narrowing.name == parameter.name; });
    if (!parameter.modelled || HasOneValue(parameter.domain) || InPair(i)) continue;
    if (const auto* choices = std::get_if<CategoricalDomain>(&parameter.domain)) {
      const ParzenAxis axis = {.kind = ParzenAxis::Kind::kCategorical,
                               .num_choices = choices->choices.size()};
      roles_[i].axis = AddAxis(axis, parameter);
      roles_[i].indices = IndicesIn(*choices, *choices);
      continue;
    }
    roles_[i].scale = NumericScale::Of(parameter.domain);
    roles_[i].axis = AddAxis(NumericAxis(*roles_[i].scale), parameter);
    roles_[i].positions = PositionsOf(*roles_[i].scale, parameter.domain);
  }
}

size_t ModelSpace::GroupOf(const Parameter& parameter) {
  const auto same = std::find_if(groups_.begin(), groups_.end(), [&](const Parameter* other) {
    return grouping_ == Grouping::kAll || other->when == parameter.when;
  });
  const size_t group = static_cast<size_t>(same - groups_.begin());
  if (same == groups_.end()) groups_.push_back(&parameter);
  return group;
}

size_t ModelSpace::AddAxis(ParzenAxis axis, const Parameter& parameter) {
  axis.group = GroupOf(parameter);
  const bool conditions = std::any_of(space_.parameters.begin(), space_.parameters.end(),
                                      [](const Parameter& other) { return !other.when.empty(); });
  if (axis.kind != ParzenAxis::Kind::kCategorical && !conditions) {
    axis.marginal_share = kMarginalOfNumbers;
  }
  axes_.push_back(axis);
  return axes_.size() - 1;
}

bool ModelSpace::InPair(size_t parameter) const {
  return pair_.has_value() && (parameter == pair_->first || parameter == pair_->second);
}

Point ModelSpace::Encode(const ParamMap& params) const {
  Point point(axes_.size());
  if (pair_.has_value()) point[pair_axis_] = EncodePair(params);
  for (size_t i = 0; i < roles_.size(); ++i) {
    if (!roles_[i].axis.has_value()) continue;
    const auto found = params.find(space_.parameters[i].name);
    if (found != params.end()) point[*roles_[i].axis] = EncodeOne(i, found->second);
  }
  return point;
}

Coordinate ModelSpace::EncodeOne(size_t parameter, const ParamValue& value) const {
  const Domain& domain = space_.parameters[parameter].domain;
  if (!Contains(domain, value)) return {};
  if (roles_[parameter].scale.has_value()) return roles_[parameter].scale->At(*AsNumber(value));
  const auto& choices = std::get<CategoricalDomain>(domain).choices;
  const auto found = std::find(choices.begin(), choices.end(), value);
  return {.present = true, .at = static_cast<double>(found - choices.begin()), .cell = {}};
}

Coordinate ModelSpace::EncodePair(const ParamMap& params) const {
  double product = 1.0;
  for (const size_t parameter : {pair_->first, pair_->second}) {
    const auto found = params.find(space_.parameters[parameter].name);
    if (found == params.end()) return {};
    if (!Contains(space_.parameters[parameter].domain, found->second)) return {};
    product *= *AsNumber(found->second);
  }
  return pair_scale_->At(product);
}

std::optional<ParamMap> ModelSpace::Draw(const ParzenEstimator& density, double together,
                                         Rng& rng) const {
  DrawState state{.density = density, .rng = rng, .together = together, .bases = {}};
  state.bases.resize(groups_.size());
  for (size_t i = 0; i < roles_.size(); ++i) {
    const Parameter& parameter = space_.parameters[i];
    if (!Holds(space_, parameter.when, state.params)) continue;
    std::optional<Domain> narrowed;
    if (roles_[i].narrowed) {
      narrowed = AllowedDomain(space_, parameter, state.params);
      if (!narrowed.has_value()) return std::nullopt;
    }
    const Domain& allowed = narrowed.has_value() ? *narrowed : parameter.domain;
    std::optional<ParamValue> value = DrawValue(i, allowed, state);
    if (!value.has_value()) return std::nullopt;
    state.params.emplace(parameter.name, *std::move(value));
  }
  return std::move(state.params);
}

size_t ModelSpace::ComponentFor(size_t axis, DrawState& state) const {
  std::optional<size_t>& base = state.bases[axes_[axis].group];
  if (!base.has_value()) base = state.density.DrawComponent(axis, state.rng);
  const bool from_base = state.rng.Uniform() < state.together;
  if (from_base && state.density.HasAxis(*base, axis)) return *base;
  return state.density.DrawComponent(axis, state.rng);
}

std::optional<ParamValue> ModelSpace::DrawValue(size_t parameter, const Domain& allowed,
                                                DrawState& state) const {
  if (InPair(parameter)) return DrawOfPair(parameter, allowed, state);
  const Role& role = roles_[parameter];
  if (!role.axis.has_value()) return DrawUniform(allowed, state.rng);
  const size_t component = ComponentFor(*role.axis, state);
  if (role.scale.has_value()) {
    const Interval within = role.narrowed ? PositionsOf(*role.scale, allowed) : role.positions;
    const double position = state.density.DrawPosition(component, *role.axis, within, state.rng);
    return NearestValue(allowed, role.scale->ValueAt(position));
  }
  const auto& all = std::get<CategoricalDomain>(space_.parameters[parameter].domain);
  const auto draw = [&](const std::vector<size_t>& indices) {
    return all.choices[state.density.DrawChoice(component, *role.axis, indices, state.rng)];
  };
  return role.narrowed ? draw(IndicesIn(all, std::get<CategoricalDomain>(allowed)))
                       : draw(role.indices);
}

std::optional<ParamValue> ModelSpace::DrawOfPair(size_t parameter, const Domain& allowed,
                                                 DrawState& state) const {
  if (parameter == pair_->second) {
    const int64_t first = *FindInt(state.params, space_.parameters[pair_->first].name);
    return ChooseSecondOfPair(first, allowed, state.target_batch);
  }
  const size_t component = ComponentFor(pair_axis_, state);
  const double position = state.density.DrawPosition(component, pair_axis_, kWholeRange, state.rng);
  state.target_batch = pair_scale_->ValueAt(position);
  const std::optional<int64_t> value =
      ChooseFirstOfPair(space_, *pair_, state.params, allowed, state.target_batch, state.rng);
  if (!value.has_value()) return std::nullopt;
  return *value;
}

}  // namespace hpo::sampler
