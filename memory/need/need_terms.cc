#include "memory/need/need_terms.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace hpo::memory {
namespace {

constexpr int kHighestDegree = 4;
// Whole numbers up to here may well be logarithms of a size.
constexpr double kLargestExponent = 40.0;
// Fewer values than these are told apart by squares.
constexpr double kFewestExponents = 4.0;

bool IsRelevant(const Parameter& parameter, const std::vector<std::string>& relevant) {
  if (!parameter.modelled) return false;
  if (relevant.empty()) return !std::holds_alternative<FloatDomain>(parameter.domain);
  return std::find(relevant.begin(), relevant.end(), parameter.name) != relevant.end();
}

bool IsNumeric(const CategoricalDomain& domain) {
  return std::all_of(domain.choices.begin(), domain.choices.end(),
                     [](const ParamValue& choice) { return AsNumber(choice).has_value(); });
}

}  // namespace

std::optional<NeedTerms::Number> NeedTerms::NumberOf(const Parameter& parameter) {
  Number number{.name = parameter.name};
  if (const auto* real = std::get_if<FloatDomain>(&parameter.domain)) {
    number.low = real->low;
    number.high = real->high;
  } else if (const auto* whole = std::get_if<IntDomain>(&parameter.domain)) {
    number.low = static_cast<double>(whole->low);
    number.high = static_cast<double>(whole->high);
    number.exponential = !whole->log && number.high <= kLargestExponent &&
                         number.high - number.low >= kFewestExponents;
  } else {
    const auto& choices = std::get<CategoricalDomain>(parameter.domain);
    if (choices.choices.empty() || !IsNumeric(choices)) return std::nullopt;
    number.low = number.high = *AsNumber(choices.choices.front());
    for (const ParamValue& choice : choices.choices) {
      number.low = std::min(number.low, *AsNumber(choice));
      number.high = std::max(number.high, *AsNumber(choice));
    }
  }
  number.origin = std::min(0.0, number.low);
  number.low -= number.origin;
  number.high -= number.origin;
  return number;
}

NeedTerms::NeedTerms(const SearchSpace& space, const std::vector<std::string>& relevant) {
  std::vector<std::pair<size_t, ParamValue>> values;
  for (const Parameter& parameter : space.parameters) {
    if (!IsRelevant(parameter, relevant)) continue;
    if (std::optional<Number> number = NumberOf(parameter)) {
      if (number->high > number->low) numbers_.push_back(*std::move(number));
      continue;
    }
    const auto& choices = std::get<CategoricalDomain>(parameter.domain).choices;
    if (choices.size() < 2) continue;
    for (const ParamValue& choice : choices) values.emplace_back(choices_.size(), choice);
    choices_.push_back(parameter.name);
  }
  const size_t limit = std::max<size_t>(1, kMaxTerms / (values.size() + 1));
  std::vector<std::vector<Power>> products;
  for (int degree = kHighestDegree; degree > 0 && products.empty(); --degree) {
    products = Products(degree, limit);
  }
  // Too many parameters for anything but a constant.
  if (products.empty()) products.emplace_back(numbers_.size(), Power::kNone);
  for (const std::vector<Power>& powers : products) terms_.push_back({.powers = powers});
  for (const auto& [choice, value] : values) {
    for (const std::vector<Power>& powers : products) {
      terms_.push_back({.powers = powers, .choice = choice, .with = value});
    }
  }
}

std::vector<NeedTerms::Power> NeedTerms::PowersOf(const Number& number) const {
  std::vector<Power> powers = {Power::kLinear, Power::kSquare};
  if (number.low > 0.0) powers.push_back(Power::kInverse);
  if (number.exponential) powers.push_back(Power::kExponential);
  return powers;
}

std::vector<std::vector<NeedTerms::Power>> NeedTerms::Products(int degree, size_t limit) const {
  struct Partial {
    std::vector<Power> powers;
    int degree = 0;
    bool inverse = false;  // nothing is split in two ways at once
  };
  std::vector<Partial> partials(1);
  for (const Number& number : numbers_) {
    std::vector<Partial> longer;
    for (const Partial& partial : partials) {
      Partial without = partial;
      without.powers.push_back(Power::kNone);
      longer.push_back(std::move(without));
      for (const Power power : PowersOf(number)) {
        Partial with = partial;
        with.powers.push_back(power);
        with.degree += power == Power::kSquare ? 2 : 1;
        with.inverse = partial.inverse || power == Power::kInverse;
        const bool twice = partial.inverse && power == Power::kInverse;
        if (with.degree <= degree && !twice) longer.push_back(std::move(with));
      }
    }
    if (longer.size() > limit) return {};
    partials = std::move(longer);
  }
  std::vector<std::vector<Power>> products;
  for (Partial& partial : partials) products.push_back(std::move(partial.powers));
  return products;
}

NeedPoint NeedTerms::PointOf(const ParamMap& params) const {
  NeedPoint point;
  for (const Number& number : numbers_) {
    const auto found = params.find(number.name);
    std::optional<double> value;
    if (found != params.end()) value = AsNumber(found->second);
    if (value) *value = std::max(0.0, *value - number.origin);
    point.numbers.push_back(value);
  }
  for (const std::string& name : choices_) {
    const auto found = params.find(name);
    point.choices.push_back(found == params.end() ? std::nullopt
                                                  : std::optional<ParamValue>(found->second));
  }
  return point;
}

double NeedTerms::Factor(const Number& number, Power power, double value) {
  switch (power) {
    case Power::kNone:
      return 1.0;
    case Power::kInverse:
      return number.low / std::max(value, number.low);
    case Power::kLinear:
      return value / number.high;
    case Power::kSquare:
      return value / number.high * value / number.high;
    case Power::kExponential:
      return std::exp2(std::min(value, number.high) - number.high);
  }
  return 0.0;
}

double NeedTerms::Value(size_t term, const NeedPoint& point) const {
  const Term& product = terms_[term];
  if (product.with && point.choices[product.choice] != product.with) return 0.0;
  double value = 1.0;
  for (size_t i = 0; i < numbers_.size(); ++i) {
    if (product.powers[i] == Power::kNone) continue;
    if (!point.numbers[i]) return 0.0;
    value *= Factor(numbers_[i], product.powers[i], *point.numbers[i]);
  }
  return value;
}

bool NeedTerms::GrowsWith(size_t term, size_t number) const {
  const Power power = terms_[term].powers[number];
  return power != Power::kNone && power != Power::kInverse;
}

bool NeedTerms::ShrinksWith(size_t term, size_t number) const {
  return terms_[term].powers[number] == Power::kInverse;
}

NeedTerms NeedTerms::Select(const std::vector<size_t>& terms) const {
  NeedTerms selected = *this;
  selected.terms_.clear();
  for (const size_t term : terms) selected.terms_.push_back(terms_[term]);
  return selected;
}

}  // namespace hpo::memory
