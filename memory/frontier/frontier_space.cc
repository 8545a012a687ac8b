#include "memory/frontier/frontier_space.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/random.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "memory/plan/space_walk.h"

namespace hpo::memory {
namespace {

constexpr size_t kDraws = 4;  // for each configuration
constexpr uint64_t kDrawStream = 0x4672'6f6e'7469'6572;

// The value at `fraction` of a domain, in [0, 1], on its scale and its grid.
double Between(double low, double high, bool log, double fraction) {
  if (log) return std::exp(std::log(low) + fraction * (std::log(high) - std::log(low)));
  return low + fraction * (high - low);
}

ParamValue ValueAt(const FloatDomain& domain, double fraction) {
  const double value = Between(domain.low, domain.high, domain.log, fraction);
  if (!domain.step) return std::clamp(value, domain.low, domain.high);
  const double index = std::round((value - domain.low) / *domain.step);
  const double on_grid = domain.low + index * *domain.step;
  return on_grid > domain.high ? on_grid - *domain.step : on_grid;
}

ParamValue ValueAt(const IntDomain& domain, double fraction) {
  const double value = Between(static_cast<double>(domain.low), static_cast<double>(domain.high),
                               domain.log, fraction);
  const double index =
      std::round((value - static_cast<double>(domain.low)) / static_cast<double>(domain.step));
  const int64_t last = (domain.high - domain.low) / domain.step;
  return domain.low + std::clamp<int64_t>(static_cast<int64_t>(index), 0, last) * domain.step;
}

ParamValue ValueAt(const CategoricalDomain& domain, double fraction) {
  const auto last = static_cast<double>(domain.choices.size() - 1);
  return domain.choices[static_cast<size_t>(std::round(fraction * last))];
}

size_t NumThinned(const Domain& domain, size_t most) {
  const int64_t all = NumValues(domain).value_or(static_cast<int64_t>(most));
  if (std::holds_alternative<CategoricalDomain>(domain)) return static_cast<size_t>(all);
  return std::min(static_cast<size_t>(all), most);
}

// Walks through the configurations of a space.
class Walk {
 public:
  Walk(const SearchSpace& space, const FrontierSpaceOptions& options)
      : space_(space),
        options_(options),
        varied_(WithParents(space, {options.relevant.begin(), options.relevant.end()})) {
    for (const Parameter& parameter : space.parameters) {
      grid_.push_back(ThinnedValues(parameter.domain, options.most_values));
    }
  }

  bool IsVaried(const std::string& name) const { return varied_.contains(name); }
  const std::vector<ParamValue>& GridOf(size_t index) const { return grid_[index]; }

  // Every configuration, until `visit` returns false. False: it did.
  using Visit = std::function<bool(const ParamMap&)>;
  bool All(const Visit& visit) const {
    ParamMap params;
    return From(0, params, visit);
  }

  // nullopt where constraints left nothing to one of its parameters.
  std::optional<ParamMap> Draw(Rng& rng) const {
    ParamMap params;
    for (size_t index = 0; index < space_.parameters.size(); ++index) {
      if (!Exists(index, params)) continue;
      const std::vector<ParamValue> values = ValuesOf(index, params);
      if (values.empty()) return std::nullopt;
      params[space_.parameters[index].name] = values[rng.Below(values.size())];
    }
    return params;
  }

 private:
  bool Exists(size_t index, const ParamMap& params) const {
    return Holds(space_, space_.parameters[index].when, params);
  }

  // Those that are tried where the parameters before it are `params`.
  std::vector<ParamValue> ValuesOf(size_t index, const ParamMap& params) const {
    const Parameter& parameter = space_.parameters[index];
    const std::optional<Domain> allowed = AllowedDomain(space_, parameter, params);
    if (!allowed) return {};
    if (!IsVaried(parameter.name)) return {Representative(parameter, *allowed)};
    std::vector<ParamValue> values;
    for (const ParamValue& value : grid_[index]) {
      if (Contains(*allowed, value)) values.push_back(value);
    }
    return values.empty() ? ThinnedValues(*allowed, options_.most_values) : values;
  }

  bool From(size_t index, ParamMap& params, const Visit& visit) const {
    if (index == space_.parameters.size()) return visit(params);
    if (!Exists(index, params)) return From(index + 1, params, visit);
    const std::string& name = space_.parameters[index].name;
    for (const ParamValue& value : ValuesOf(index, params)) {
      params[name] = value;
      if (!From(index + 1, params, visit)) return false;
    }
    params.erase(name);
    return true;
  }

  const SearchSpace& space_;
  const FrontierSpaceOptions& options_;
  const std::set<std::string> varied_;
  std::vector<std::vector<ParamValue>> grid_;
};

bool IsNumber(const Domain& domain) {
  const auto* choices = std::get_if<CategoricalDomain>(&domain);
  return choices == nullptr ||
         std::all_of(choices->choices.begin(), choices->choices.end(),
                     [](const ParamValue& choice) { return AsNumber(choice).has_value(); });
}

// The values that the configurations have, in the order of the domain or of the numbers.
FrontierAxis AxisOf(const Parameter& parameter, const std::vector<ParamMap>& configurations) {
  FrontierAxis axis{.name = parameter.name, .is_number = IsNumber(parameter.domain)};
  std::set<ParamValue> seen;
  for (const ParamMap& params : configurations) {
    if (const auto found = params.find(parameter.name); found != params.end()) {
      seen.insert(found->second);
    }
  }
  if (axis.is_number) {
    axis.values.assign(seen.begin(), seen.end());
    std::sort(axis.values.begin(), axis.values.end(),
              [](const ParamValue& a, const ParamValue& b) { return *AsNumber(a) < *AsNumber(b); });
    return axis;
  }
  for (const ParamValue& choice : std::get<CategoricalDomain>(parameter.domain).choices) {
    if (seen.contains(choice)) axis.values.push_back(choice);
  }
  return axis;
}

}  // namespace

std::vector<ParamValue> ThinnedValues(const Domain& domain, size_t most) {
  const size_t count = NumThinned(domain, most);
  if (const auto* whole = std::get_if<IntDomain>(&domain)) {
    // A logarithmic scale would miss some of a few.
    if (NumValues(domain) == static_cast<int64_t>(count)) {
      std::vector<ParamValue> all;
      for (size_t i = 0; i < count; ++i) {
        all.emplace_back(whole->low + static_cast<int64_t>(i) * whole->step);
      }
      return all;
    }
  }
  std::vector<ParamValue> values;
  for (size_t i = 0; i < count; ++i) {
    const double fraction =
        count == 1 ? 1.0 : static_cast<double>(i) / static_cast<double>(count - 1);
    ParamValue value =
        std::visit([fraction](const auto& held) { return ValueAt(held, fraction); }, domain);
    if (values.empty() || values.back() != value) values.push_back(std::move(value));
  }
  return values;
}

ParamValue Representative(const Parameter& parameter, const Domain& allowed) {
  if (parameter.default_value && Contains(allowed, *parameter.default_value)) {
    return *parameter.default_value;
  }
  return std::visit([](const auto& held) { return ValueAt(held, 0.5); }, allowed);
}

absl::Status CheckNames(const SearchSpace& space, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const Parameter& parameter : space.parameters) known.push_back(parameter.name);
  for (const std::string& name : names) {
    if (space.Find(name) != nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat("expected a parameter of the study (",
                                                   absl::StrJoin(known, ", "), "), got '", name,
                                                   "'", DidYouMean(name, known)));
  }
  return absl::OkStatus();
}

std::vector<std::string> UsualRelevant(const SearchSpace& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters) {
    const bool is_real = std::holds_alternative<FloatDomain>(parameter.domain);
    if (parameter.modelled && !is_real && NumValues(parameter.domain) != 1) {
      names.push_back(parameter.name);
    }
  }
  return names;
}

absl::StatusOr<FrontierSpace> FrontierSpaceOf(const SearchSpace& space,
                                              const FrontierSpaceOptions& options) {
  HPO_RETURN_IF_ERROR(CheckNames(space, options.relevant));
  const Walk walk(space, options);
  FrontierSpace found;
  found.is_sampled = !walk.All([&](const ParamMap& params) {
    if (found.configurations.size() == options.most_configurations) return false;
    found.configurations.push_back(params);
    return true;
  });
  if (found.is_sampled) {
    std::set<ParamMap> drawn;
    Rng rng(options.seed, kDrawStream);
    // Some are drawn twice.
    const size_t most = options.most_configurations;
    for (size_t i = 0; i < kDraws * most && drawn.size() < most; ++i) {
      if (std::optional<ParamMap> params = walk.Draw(rng)) drawn.insert(*std::move(params));
    }
    found.configurations.assign(drawn.begin(), drawn.end());
  }
  if (found.configurations.empty()) {
    return absl::FailedPreconditionError("the study's constraints leave no configuration");
  }
  for (size_t index = 0; index < space.parameters.size(); ++index) {
    const Parameter& parameter = space.parameters[index];
    if (!walk.IsVaried(parameter.name)) continue;
    FrontierAxis axis = AxisOf(parameter, found.configurations);
    if (axis.values.size() < 2) continue;
    const std::optional<int64_t> all = NumValues(parameter.domain);
    found.is_thinned =
        found.is_thinned || !all || static_cast<size_t>(*all) > walk.GridOf(index).size();
    found.axes.push_back(std::move(axis));
  }
  return found;
}

}  // namespace hpo::memory
