#include "memory/plan/space_walk.h"

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <variant>

#include "memory/need/memory_estimate.h"

namespace hpo::memory {
namespace {

// Names that `conditions` ask for; a model's facts are the model's.
void AddNames(const std::vector<Condition>& conditions, std::set<std::string>& names) {
  for (const Condition& condition : conditions) {
    const bool fact = condition.name == kModelClassFact || condition.name == kModelFamilyFact;
    names.insert(fact ? kModelNameParameter : condition.name);
  }
}

// In the space's order: parents before children.
std::vector<const Parameter*> RelevantParameters(const SearchSpace& space) {
  const std::span<const char* const> all = MemoryParameters();
  const std::set<std::string> names = WithParents(space, {all.begin(), all.end()});
  std::vector<const Parameter*> relevant;
  for (const Parameter& parameter : space.parameters) {
    if (names.contains(parameter.name)) relevant.push_back(&parameter);
  }
  return relevant;
}

ParamValue ValueAt(const FloatDomain& domain, int64_t index) {
  return domain.step ? domain.low + static_cast<double>(index) * *domain.step : domain.high;
}
ParamValue ValueAt(const IntDomain& domain, int64_t index) {
  return domain.low + index * domain.step;
}
ParamValue ValueAt(const CategoricalDomain& domain, int64_t index) {
  return domain.choices[static_cast<size_t>(index)];
}

ParamValue Value(const Domain& domain, int64_t index) {
  return std::visit([index](const auto& held) { return ValueAt(held, index); }, domain);
}

}  // namespace

std::set<std::string> WithParents(const SearchSpace& space, std::set<std::string> names) {
  for (size_t before = 0; before != names.size();) {
    before = names.size();
    for (const Parameter& parameter : space.parameters) {
      if (names.contains(parameter.name)) AddNames(parameter.when, names);
    }
    for (const Narrowing& narrowing : space.narrowings) {
      if (names.contains(narrowing.name)) AddNames(narrowing.when, names);
    }
  }
  return names;
}

SpaceWalk::SpaceWalk(const SearchSpace& space)
    : space_(space), parameters_(RelevantParameters(space)) {}

bool SpaceWalk::All(const Visit& visit) const {
  ParamMap params;
  return From(0, params, visit);
}

std::optional<ParamMap> SpaceWalk::Draw(Rng& rng) const {
  ParamMap params;
  for (const Parameter* const parameter : parameters_) {
    if (!Holds(space_, parameter->when, params)) continue;
    const std::optional<Domain> allowed = AllowedDomain(space_, *parameter, params);
    if (!allowed.has_value()) return std::nullopt;
    const auto count = static_cast<uint64_t>(NumValues(*allowed).value_or(1));
    params[parameter->name] = Value(*allowed, static_cast<int64_t>(rng.Below(count)));
  }
  return params;
}

bool SpaceWalk::From(size_t index, ParamMap& params, const Visit& visit) const {
  if (index == parameters_.size()) return visit(params);
  const Parameter& parameter = *parameters_[index];
  if (!Holds(space_, parameter.when, params)) return From(index + 1, params, visit);
  const std::optional<Domain> allowed = AllowedDomain(space_, parameter, params);
  if (!allowed.has_value()) return true;
  const int64_t count = NumValues(*allowed).value_or(1);
  for (int64_t i = 0; i < count; ++i) {
    params[parameter.name] = Value(*allowed, i);
    if (!From(index + 1, params, visit)) return false;
  }
  params.erase(parameter.name);
  return true;
}

}  // namespace hpo::memory
