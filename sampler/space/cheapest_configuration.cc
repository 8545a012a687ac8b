// Tested by tests/sampler/space/candidate_pool_test.cc.
#include "sampler/space/cheapest_configuration.h"

#include <algorithm>
#include <utility>

#include "sampler/space/numeric_scale.h"
#include "sampler/space/random_configuration.h"

namespace hpo::sampler {
namespace {

constexpr int kMaxProbes = 16;
constexpr int kMaxRounds = 4;

ParamValue FirstValue(const Domain& domain) {
  if (const auto* choices = std::get_if<CategoricalDomain>(&domain)) return choices->choices[0];
  if (const FloatDomain* real = std::get_if<FloatDomain>(&domain)) return real->low;
  return std::get<IntDomain>(domain).low;
}

double LastNumber(const Domain& domain) {
  if (const FloatDomain* real = std::get_if<FloatDomain>(&domain)) return LastValue(*real);
  return static_cast<double>(LastValue(std::get<IntDomain>(domain)));
}

// Less need first; of equal needs those that fit.
bool Cheaper(const memory::Fit& a, const memory::Fit& b) {
  if (a.needed != b.needed) return a.needed < b.needed;
  return a.fits && !b.fits;
}

// `current` or the cheapest of its variations in `parameter`.
Candidate CheapestVariation(const AskContext& context, const Parameter& parameter,
                            const Candidate& current) {
  const std::optional<Domain> allowed = AllowedDomain(context.space, parameter, current.params);
  if (!allowed.has_value()) return current;
  std::vector<ParamMap> variations;
  for (const ParamValue& value : ProbeValues(*allowed)) {
    std::optional<ParamMap> varied =
        WithValue(context.space, current.params, parameter.name, value);
    if (varied.has_value()) variations.push_back(*std::move(varied));
  }
  const std::vector<memory::Fit> fits = context.feasibility(variations);
  Candidate best = current;
  for (size_t i = 0; i < variations.size(); ++i) {
    if (Cheaper(fits[i], best.fit)) best = {variations[i], fits[i]};
  }
  return best;
}

}  // namespace

std::vector<ParamValue> ProbeValues(const Domain& domain) {
  if (const auto* choices = std::get_if<CategoricalDomain>(&domain)) {
    const size_t count = std::min<size_t>(choices->choices.size(), kMaxProbes);
    return {choices->choices.begin(), choices->choices.begin() + static_cast<ptrdiff_t>(count)};
  }
  const std::optional<int64_t> num_values = NumValues(domain);
  const int count =
      static_cast<int>(std::min<int64_t>(kMaxProbes, num_values.value_or(kMaxProbes)));
  const double low = *AsNumber(FirstValue(domain));
  const double high = LastNumber(domain);
  std::vector<ParamValue> values;
  for (int i = 0; i < count; ++i) {
    const double fraction = count == 1 ? 0.0 : static_cast<double>(i) / (count - 1);
    ParamValue value = NearestValue(domain, low * (1.0 - fraction) + high * fraction);
    if (values.empty() || values.back() != value) values.push_back(std::move(value));
  }
  return values;
}

std::optional<ParamMap> WithValue(const SearchSpace& space, const ParamMap& params,
                                  const std::string& name, const ParamValue& value) {
  ParamMap result;
  for (const Parameter& parameter : space.parameters) {
    if (!Holds(space, parameter.when, result)) continue;
    const std::optional<Domain> allowed = AllowedDomain(space, parameter, result);
    if (!allowed.has_value()) return std::nullopt;
    if (parameter.name == name) {
      if (!Contains(*allowed, value)) return std::nullopt;
      result.emplace(name, value);
      continue;
    }
    const auto kept = params.find(parameter.name);
    const bool keep = kept != params.end() && Contains(*allowed, kept->second);
    result.emplace(parameter.name, keep ? kept->second : FirstValue(*allowed));
  }
  if (!result.contains(name)) return std::nullopt;
  return result;
}

Candidate FindCheapest(const AskContext& context, Candidate start, CheapestGoal goal) {
  Candidate current = std::move(start);
  for (int round = 0; round < kMaxRounds; ++round) {
    const ParamMap before = current.params;
    for (const Parameter& parameter : context.space.parameters) {
      if (goal == CheapestGoal::kFirstThatFits && current.fit.fits) return current;
      if (!current.params.contains(parameter.name)) continue;
      current = CheapestVariation(context, parameter, current);
    }
    if (current.params == before) break;
  }
  return current;
}

std::optional<Candidate> LeastDemanding(const AskContext& context) {
  Rng rng(/*seed=*/0, /*stream=*/0);
  absl::StatusOr<ParamMap> start = DrawConfiguration(context.space, {}, rng);
  if (!start.ok()) return std::nullopt;
  const memory::Fit fit = context.feasibility({&*start, 1}).front();
  return FindCheapest(context, {*std::move(start), fit}, CheapestGoal::kLeastNeed);
}

}  // namespace hpo::sampler
