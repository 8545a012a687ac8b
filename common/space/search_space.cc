#include "common/space/search_space.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hpo {
namespace {

// How far from its grid point a number may lie, as a fraction of the step: rounding, nothing more.
constexpr double kGridTolerance = 1e-9;

bool IsModelFact(absl::string_view name) {
  return name == kModelClassFact || name == kModelFamilyFact;
}

// The value that conditions on `name` compare with; null where `params` does not say.
const ParamValue* ConditionValue(const SearchSpace& space, const std::string& name,
                                 const ParamMap& params) {
  if (!IsModelFact(name)) {
    const auto found = params.find(name);
    return found == params.end() ? nullptr : &found->second;
  }
  const std::optional<std::string> model = FindString(params, kModelNameParameter);
  if (!model.has_value()) return nullptr;
  const auto facts = space.model_facts.find(*model);
  if (facts == space.model_facts.end()) return nullptr;
  const auto fact = facts->second.find(name);
  return fact == facts->second.end() ? nullptr : &fact->second;
}

bool Includes(const std::vector<ParamValue>& values, const ParamValue& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool SameNumber(const ParamValue& a, const ParamValue& b) {
  const std::optional<double> left = AsNumber(a);
  return left.has_value() && left == AsNumber(b) && (a.index() != b.index() || a == b);
}

// Index of the grid value nearest to `value`.
double GridIndex(const FloatDomain& domain, double value) {
  return std::round((value - domain.low) / *domain.step);
}

double GridValue(const FloatDomain& domain, double index) {
  return domain.low + index * *domain.step;
}

bool ContainsValue(const FloatDomain& domain, const ParamValue& value) {
  const double* number = std::get_if<double>(&value);
  if (number == nullptr || !std::isfinite(*number)) return false;
  if (!domain.step.has_value()) return *number >= domain.low && *number <= domain.high;
  const double tolerance = kGridTolerance * *domain.step;
  if (*number < domain.low - tolerance || *number > domain.high + tolerance) return false;
  return std::abs(GridValue(domain, GridIndex(domain, *number)) - *number) <= tolerance;
}

bool ContainsValue(const IntDomain& domain, const ParamValue& value) {
  const int64_t* number = std::get_if<int64_t>(&value);
  if (number == nullptr || *number < domain.low || *number > domain.high) return false;
  return (*number - domain.low) % domain.step == 0;
}

bool ContainsValue(const CategoricalDomain& domain, const ParamValue& value) {
  return Includes(domain.choices, value);
}

std::optional<Domain> IntersectSame(const FloatDomain& a, const FloatDomain& b) {
  FloatDomain both = a;
  both.low = std::max(a.low, b.low);
  both.high = std::min(a.high, b.high);
  if (a.step.has_value()) {
    const double first = std::ceil((both.low - a.low) / *a.step - kGridTolerance);
    const double last = std::floor((both.high - a.low) / *a.step + kGridTolerance);
    if (first > last) return std::nullopt;
    both.low = GridValue(a, first);
    both.high = GridValue(a, last);
  }
  if (!(both.low <= both.high)) return std::nullopt;
  return both;
}

std::optional<Domain> IntersectSame(const IntDomain& a, const IntDomain& b) {
  IntDomain both = a;
  both.high = std::min(a.high, b.high);
  if (b.low > a.low) {
    const int64_t steps = (b.low - a.low + a.step - 1) / a.step;
    both.low = a.low + steps * a.step;
  }
  if (both.low > both.high) return std::nullopt;
  return both;
}

std::optional<Domain> IntersectSame(const CategoricalDomain& a, const CategoricalDomain& b) {
  CategoricalDomain both;
  for (const ParamValue& choice : a.choices) {
    if (Includes(b.choices, choice)) both.choices.push_back(choice);
  }
  if (both.choices.empty()) return std::nullopt;
  return both;
}

std::optional<int64_t> CountValues(const FloatDomain& domain) {
  if (!domain.step.has_value()) return std::nullopt;
  return static_cast<int64_t>(
             std::floor((domain.high - domain.low) / *domain.step + kGridTolerance)) +
         1;
}

std::optional<int64_t> CountValues(const IntDomain& domain) {
  return (domain.high - domain.low) / domain.step + 1;
}

std::optional<int64_t> CountValues(const CategoricalDomain& domain) {
  return static_cast<int64_t>(domain.choices.size());
}

std::string Format(const FloatDomain& domain) {
  std::string text =
      absl::StrCat("[", FormatParam(domain.low), ", ", FormatParam(domain.high), "]");
  if (domain.step.has_value()) absl::StrAppend(&text, " step ", FormatParam(*domain.step));
  if (domain.log) text += " log";
  return text;
}

std::string Format(const IntDomain& domain) {
  std::string text = absl::StrCat("[", domain.low, ", ", domain.high, "]");
  if (domain.step != 1) absl::StrAppend(&text, " step ", domain.step);
  if (domain.log) text += " log";
  return text;
}

std::string FormatValues(const std::vector<ParamValue>& values) {
  return absl::StrCat("{",
                      absl::StrJoin(values, ", ",
                                    [](std::string* out, const ParamValue& value) {
                                      out->append(ShowParam(value));
                                    }),
                      "}");
}

std::string Format(const CategoricalDomain& domain) { return FormatValues(domain.choices); }

// "a real number", for messages about a value's type.
absl::string_view TypeName(const ParamValue& value) {
  constexpr absl::string_view kNames[] = {"true or false", "an integer", "a real number", "text",
                                          "no value"};
  return kNames[value.index()];
}

absl::string_view KindName(const Domain& domain) {
  constexpr absl::string_view kNames[] = {"float", "int", "choices"};
  return kNames[domain.index()];
}

}  // namespace

const Parameter* SearchSpace::Find(absl::string_view name) const {
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

bool Contains(const Domain& domain, const ParamValue& value) {
  return std::visit([&](const auto& held) { return ContainsValue(held, value); }, domain);
}

ParamValue Coerce(const Domain& domain, const ParamValue& value) {
  if (const auto* choices = std::get_if<CategoricalDomain>(&domain)) {
    const auto equal =
        std::find_if(choices->choices.begin(), choices->choices.end(),
                     [&value](const ParamValue& choice) { return SameNumber(choice, value); });
    return equal == choices->choices.end() ? value : *equal;
  }
  const int64_t* integer = std::get_if<int64_t>(&value);
  if (integer == nullptr || !std::holds_alternative<FloatDomain>(domain)) return value;
  return static_cast<double>(*integer);
}

bool Holds(const SearchSpace& space, const std::vector<Condition>& conditions,
           const ParamMap& params) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    const ParamValue* value = ConditionValue(space, condition.name, params);
    return value != nullptr && Includes(condition.values, *value);
  });
}

std::optional<Domain> AllowedDomain(const SearchSpace& space, const Parameter& parameter,
                                    const ParamMap& params) {
  std::optional<Domain> allowed = parameter.domain;
  for (const Narrowing& narrowing : space.narrowings) {
    if (narrowing.name != parameter.name || !Holds(space, narrowing.when, params)) continue;
    allowed = Intersect(*allowed, narrowing.domain);
    if (!allowed.has_value()) return std::nullopt;
  }
  return allowed;
}

std::optional<Domain> Intersect(const Domain& a, const Domain& b) {
  return std::visit(
      [](const auto& left, const auto& right) -> std::optional<Domain> {
        if constexpr (std::is_same_v<decltype(left), decltype(right)>) {
          return IntersectSame(left, right);
        } else {
          return std::nullopt;
        }
      },
      a, b);
}

absl::Status ValidateParams(const SearchSpace& space, const ParamMap& params) {
  for (const Parameter& parameter : space.parameters) {
    const auto found = params.find(parameter.name);
    const bool active = Holds(space, parameter.when, params);
    if (found == params.end()) {
      if (!active) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          parameter.name, ": expected ", FormatDomain(parameter.domain), ", got no value"));
    }
    const std::string given = FormatParam(found->second);
    if (!active) {
      return absl::InvalidArgumentError(absl::StrCat(
          parameter.name, ": expected no value, as its conditions do not hold, got ", given));
    }
    const std::optional<Domain> allowed = AllowedDomain(space, parameter, params);
    if (!allowed.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(parameter.name, ": its constraints leave no value at all, got ", given));
    }
    if (!Contains(*allowed, found->second)) {
      return absl::InvalidArgumentError(absl::StrCat(
          parameter.name, ": expected ", KindName(*allowed), " ", FormatDomain(*allowed), ", got ",
          given, " (", TypeName(found->second), ")"));
    }
  }
  for (const auto& [name, value] : params) {
    if (space.Find(name) == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": expected a parameter of the study, got an unknown one"));
    }
  }
  return absl::OkStatus();
}

std::optional<int64_t> NumValues(const Domain& domain) {
  return std::visit([](const auto& held) { return CountValues(held); }, domain);
}

std::string FormatDomain(const Domain& domain) {
  return std::visit([](const auto& held) { return Format(held); }, domain);
}

}  // namespace hpo
