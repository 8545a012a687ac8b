#include "sampler/space/effective_batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

constexpr int64_t kMaxValues = 64;
constexpr int64_t kMaxValue = int64_t{1} << 26;  // products stay exact
// Distances in logarithm that differ by less are equal: rounding, nothing more.
constexpr double kTie = 1e-9;

double LogDistance(int64_t a, int64_t b, double target) {
  return std::abs(Log(static_cast<double>(a * b) / target));
}

std::optional<size_t> IndexOf(const SearchSpace& space, const char* name) {
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    if (space.parameters[i].name == name) return i;
  }
  return std::nullopt;
}

// Sorted, each once; empty where either domain is not one of few positive integers.
std::vector<int64_t> Products(const Domain& a, const Domain& b) {
  const auto left = PositiveIntegers(a);
  const auto right = PositiveIntegers(b);
  if (!left.has_value() || !right.has_value()) return {};
  std::vector<int64_t> products;
  for (const int64_t x : *left) {
    for (const int64_t y : *right) products.push_back(x * y);
  }
  std::sort(products.begin(), products.end());
  products.erase(std::unique(products.begin(), products.end()), products.end());
  return products;
}

std::vector<int64_t> ProductsOf(const SearchSpace& space, const EffectiveBatchPair& pair) {
  return Products(space.parameters[pair.first].domain, space.parameters[pair.second].domain);
}

double SmallestDistance(int64_t first, const std::vector<int64_t>& partners, double target) {
  double smallest = std::numeric_limits<double>::infinity();
  for (const int64_t partner : partners) {
    smallest = std::min(smallest, LogDistance(first, partner, target));
  }
  return smallest;
}

}  // namespace

std::optional<std::vector<int64_t>> PositiveIntegers(const Domain& domain) {
  std::vector<int64_t> values;
  if (const auto* integers = std::get_if<IntDomain>(&domain)) {
    if ((integers->high - integers->low) / integers->step >= kMaxValues) return std::nullopt;
    for (int64_t value = integers->low; value <= integers->high; value += integers->step) {
      values.push_back(value);
    }
  } else if (const auto* choices = std::get_if<CategoricalDomain>(&domain)) {
    for (const ParamValue& choice : choices->choices) {
      const int64_t* value = std::get_if<int64_t>(&choice);
      if (value == nullptr) return std::nullopt;
      values.push_back(*value);
    }
  } else {
    return std::nullopt;
  }
  const bool usable = std::all_of(values.begin(), values.end(),
                                  [](int64_t value) { return value > 0 && value <= kMaxValue; });
  if (!usable || static_cast<int64_t>(values.size()) > kMaxValues) return std::nullopt;
  return values;
}

std::optional<EffectiveBatchPair> FindEffectiveBatch(const SearchSpace& space) {
  const std::optional<size_t> batch = IndexOf(space, kBatchSizeParameter);
  const std::optional<size_t> accum = IndexOf(space, kGradAccumParameter);
  if (!batch.has_value() || !accum.has_value()) return std::nullopt;
  const Parameter& a = space.parameters[*batch];
  const Parameter& b = space.parameters[*accum];
  if (!a.modelled || !b.modelled || a.when != b.when) return std::nullopt;
  if (Products(a.domain, b.domain).size() < 2) return std::nullopt;
  return EffectiveBatchPair{std::min(*batch, *accum), std::max(*batch, *accum)};
}

NumericScale EffectiveBatchScale(const SearchSpace& space, const EffectiveBatchPair& pair) {
  const std::vector<int64_t> products = ProductsOf(space, pair);
  const auto product = [&](size_t i) { return static_cast<double>(products[i]); };
  const size_t last = products.size() - 1;
  const double low = product(0) * std::sqrt(product(0) / product(1));
  const double high = product(last) * std::sqrt(product(last) / product(last - 1));
  return NumericScale::Log(low, high);
}

std::optional<int64_t> ChooseFirstOfPair(const SearchSpace& space, const EffectiveBatchPair& pair,
                                         const ParamMap& params, const Domain& allowed,
                                         double target, Rng& rng) {
  const Parameter& first = space.parameters[pair.first];
  const Parameter& second = space.parameters[pair.second];
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::pair<int64_t, double>> distances;
  ParamMap with_first = params;
  const std::vector<int64_t> values = *PositiveIntegers(allowed);
  for (const int64_t value : values) {
    with_first[first.name] = value;
    const std::optional<Domain> partners = AllowedDomain(space, second, with_first);
    if (!partners.has_value()) continue;
    distances.emplace_back(value, SmallestDistance(value, *PositiveIntegers(*partners), target));
    best = std::min(best, distances.back().second);
  }
  std::vector<int64_t> nearest;
  for (const auto& [value, distance] : distances) {
    if (distance <= best + kTie) nearest.push_back(value);
  }
  if (nearest.empty()) return std::nullopt;
  return nearest[rng.Below(nearest.size())];
}

int64_t ChooseSecondOfPair(int64_t first, const Domain& allowed, double target) {
  const std::vector<int64_t> values = *PositiveIntegers(allowed);
  return *std::min_element(values.begin(), values.end(), [&](int64_t a, int64_t b) {
    const double left = LogDistance(first, a, target);
    const double right = LogDistance(first, b, target);
    return std::abs(left - right) > kTie ? left < right : a < b;
  });
}

}  // namespace hpo::sampler
