#include "sampler/space/narrow_for_capacity.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampler/sampler.h"
#include "sampler/space/candidate_pool.h"
#include "sampler/space/cheapest_configuration.h"
#include "sampler/space/numeric_scale.h"

namespace hpo {
namespace {

// Whether some configuration with a given value of one parameter fits; everything else cheapest.
class FitProbe {
 public:
  FitProbe(const AskContext& context, Candidate cheapest)
      : context_(context), cheapest_(std::move(cheapest)) {}

  bool Fits(const Parameter& parameter, const ParamValue& value) const {
    const std::optional<ParamMap> params =
        WithValue(context_.space, BaseFor(parameter), parameter.name, value);
    if (!params.has_value()) return false;
    Candidate candidate{*params, context_.feasibility({&*params, 1}).front()};
    if (candidate.fit.fits) return true;
    // The value may have brought other parameters along (children, narrowings): cheapen those.
    if (!ChangesOthers(*params, parameter.name)) return false;
    return FindCheapest(context_, std::move(candidate), CheapestGoal::kFirstThatFits,
                        parameter.name)
        .fit.fits;
  }

 private:
  // The cheapest configuration, in which parents take values that make `parameter` exist.
  ParamMap BaseFor(const Parameter& parameter) const {
    ParamMap base = cheapest_.params;
    MakeExist(parameter, base);
    return base;
  }

  void MakeExist(const Parameter& parameter, ParamMap& base) const {
    for (const Condition& condition : parameter.when) {
      if (condition.values.empty()) continue;
      if (const Parameter* parent = context_.space.Find(condition.name); parent != nullptr) {
        MakeExist(*parent, base);
        if (!Holds(context_.space, {condition}, base)) {
          base[condition.name] = condition.values.front();
        }
      } else if (!Holds(context_.space, {condition}, base)) {
        ChooseModelWith(condition, base);
      }
    }
  }

  // Conditions on facts of a model are met by a model that has them.
  void ChooseModelWith(const Condition& condition, ParamMap& base) const {
    for (const auto& [model, facts] : context_.space.model_facts) {
      base[kModelNameParameter] = model;
      if (Holds(context_.space, {condition}, base)) return;
    }
  }

  bool ChangesOthers(const ParamMap& params, const std::string& name) const {
    ParamMap same = cheapest_.params;
    same[name] = params.at(name);
    return same != params;
  }

  const AskContext& context_;
  Candidate cheapest_;
};

std::optional<Domain> NarrowChoices(const FitProbe& probe, const Parameter& parameter,
                                    const CategoricalDomain& domain) {
  CategoricalDomain fitting;
  for (const ParamValue& choice : domain.choices) {
    if (probe.Fits(parameter, choice)) fitting.choices.push_back(choice);
  }
  if (fitting.choices.empty()) return std::nullopt;
  return fitting;
}

// The value next to the boundary between `inside`, which fits, and `outside`, which does not.
double FitBoundary(const FitProbe& probe, const Parameter& parameter, double inside,
                   double outside) {
  constexpr int kMaxBisections = 40;
  for (int i = 0; i < kMaxBisections; ++i) {
    const double middle = *AsNumber(NearestValue(parameter.domain, 0.5 * inside + 0.5 * outside));
    // On a grid: neighbours reached.
    if (middle == inside || middle == outside) break;
    (probe.Fits(parameter, NearestValue(parameter.domain, middle)) ? inside : outside) = middle;
  }
  return inside;
}

// The range from the first to the last value that fits, found from evenly spaced ones.
std::optional<std::pair<double, double>> FittingRange(const FitProbe& probe,
                                                      const Parameter& parameter) {
  const std::vector<ParamValue> values = ProbeValues(parameter.domain);
  const auto fits = [&](const ParamValue& value) { return probe.Fits(parameter, value); };
  const auto first = std::find_if(values.begin(), values.end(), fits);
  if (first == values.end()) return std::nullopt;
  const auto last = std::find_if(values.rbegin(), values.rend(), fits);
  std::pair<double, double> range{*AsNumber(*first), *AsNumber(*last)};
  if (first != values.begin()) {
    range.first = FitBoundary(probe, parameter, range.first, *AsNumber(*(first - 1)));
  }
  if (last != values.rbegin()) {
    range.second = FitBoundary(probe, parameter, range.second, *AsNumber(*(last - 1)));
  }
  return range;
}

std::optional<Domain> NarrowDomain(const FitProbe& probe, const Parameter& parameter) {
  if (const auto* choices = std::get_if<CategoricalDomain>(&parameter.domain)) {
    return NarrowChoices(probe, parameter, *choices);
  }
  const auto range = FittingRange(probe, parameter);
  if (!range.has_value()) return std::nullopt;
  Domain narrowed = parameter.domain;
  if (FloatDomain* real = std::get_if<FloatDomain>(&narrowed)) {
    real->low = range->first;
    real->high = range->second == LastValue(*real) ? real->high : range->second;
  } else {
    IntDomain& integers = std::get<IntDomain>(narrowed);
    integers.low = static_cast<int64_t>(range->first);
    integers.high = static_cast<int64_t>(range->second);
  }
  return narrowed;
}

// Narrowings stay inside their parameter's domain; one that would leave nothing is dropped, as no
// configuration that it applies to fits.
void CutNarrowings(SearchSpace& space) {
  std::vector<Narrowing> kept;
  for (Narrowing& narrowing : space.narrowings) {
    const Parameter* parameter = space.Find(narrowing.name);
    if (parameter == nullptr) continue;
    std::optional<Domain> inside = Intersect(narrowing.domain, parameter->domain);
    if (!inside.has_value()) continue;
    narrowing.domain = *std::move(inside);
    kept.push_back(std::move(narrowing));
  }
  space.narrowings = std::move(kept);
}

}  // namespace

SearchSpace NarrowForCapacity(const AskContext& context) {
  SearchSpace narrowed = context.space;
  if (!context.feasibility) return narrowed;
  std::optional<Candidate> cheapest = LeastDemanding(context);
  if (!cheapest.has_value() || !cheapest->fit.fits) return narrowed;
  const FitProbe probe(context, *std::move(cheapest));
  for (Parameter& parameter : narrowed.parameters) {
    std::optional<Domain> domain = NarrowDomain(probe, parameter);
    // Nothing fits where a conditional parameter exists: the candidates show it, one by one.
    if (!domain.has_value()) continue;
    parameter.domain = *std::move(domain);
    if (parameter.default_value.has_value() &&
        !Contains(parameter.domain, *parameter.default_value)) {
      parameter.default_value.reset();
    }
  }
  CutNarrowings(narrowed);
  return narrowed;
}

}  // namespace hpo
