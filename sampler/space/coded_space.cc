#include "sampler/space/coded_space.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

// Positions of grids of at most so many values are kept.
constexpr double kMostPositions = 4096.0;

double IndexIn(const std::vector<ParamValue>& values, const ParamValue& value) {
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? kUnknownChoice : static_cast<double>(found - values.begin());
}

bool Includes(const std::vector<double>& codes, double code) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

std::optional<size_t> IndexOf(const SearchSpace& space, const std::string& name) {
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    if (space.parameters[i].name == name) return i;
  }
  return std::nullopt;
}

}  // namespace

bool AllowedCodes::Contains(double code) const {
  if (!choices.empty()) return Includes(choices, code);
  return code >= low && code <= high;
}

CodedSpace::CodedSpace(const SearchSpace& space) : space_(space) {
  for (const Parameter& parameter : space.parameters) coded_.push_back(CodeParameter(parameter));
  for (size_t i = 0; i < coded_.size(); ++i) {
    CodedParameter& coded = coded_[i];
    coded.when = CodeConditions(space.parameters[i].when);
    for (const Narrowing& narrowing : space.narrowings) {
      if (narrowing.name != space.parameters[i].name) continue;
      coded.narrowings.push_back(CodeNarrowing(i, narrowing));
    }
    if (coded.kind != Kind::kGrid || coded.last >= kMostPositions) continue;
    std::vector<double> positions;
    for (double code = 0.0; code <= coded.last; code += 1.0) positions.push_back(Position(i, code));
    coded.positions = std::move(positions);
  }
}

CodedSpace::CodedParameter CodedSpace::CodeParameter(const Parameter& parameter) const {
  CodedParameter coded;
  if (const auto* choices = std::get_if<CategoricalDomain>(&parameter.domain)) {
    coded.last = static_cast<double>(choices->choices.size()) - 1.0;
    return coded;
  }
  const std::optional<int64_t> count = NumValues(parameter.domain);
  coded.scale = NumericScale::Of(parameter.domain);
  coded.kind = count.has_value() ? Kind::kGrid : Kind::kContinuous;
  if (const auto* real = std::get_if<FloatDomain>(&parameter.domain)) {
    coded.last =
        count.has_value() ? static_cast<double>(*count - 1) : (real->low < real->high ? 1.0 : 0.0);
  } else {
    coded.last = static_cast<double>(*count - 1);
  }
  return coded;
}

std::vector<CodedSpace::CodedCondition> CodedSpace::CodeConditions(
    const std::vector<Condition>& conditions) const {
  std::vector<CodedCondition> result;
  for (const Condition& condition : conditions) {
    CodedCondition coded;
    if (const auto parent = IndexOf(space_, condition.name); parent.has_value()) {
      coded.parameter = *parent;
      for (const ParamValue& value : condition.values) {
        if (!Contains(space_.parameters[*parent].domain, value)) continue;
        coded.codes.push_back(CodeOf(*parent, value));
      }
    } else if (const auto model = IndexOf(space_, kModelNameParameter); model.has_value()) {
      coded.parameter = *model;
      const auto* names = std::get_if<CategoricalDomain>(&space_.parameters[*model].domain);
      for (size_t i = 0; names != nullptr && i < names->choices.size(); ++i) {
        const ParamMap named{{kModelNameParameter, names->choices[i]}};
        if (Holds(space_, {condition}, named)) coded.codes.push_back(static_cast<double>(i));
      }
    }
    result.push_back(std::move(coded));
  }
  return result;
}

CodedSpace::CodedNarrowing CodedSpace::CodeNarrowing(size_t parameter,
                                                     const Narrowing& narrowing) const {
  CodedNarrowing result{.when = CodeConditions(narrowing.when)};
  const Domain& domain = space_.parameters[parameter].domain;
  const std::optional<Domain> both = Intersect(domain, narrowing.domain);
  result.nothing = !both.has_value();
  if (result.nothing) return result;
  if (const auto* choices = std::get_if<CategoricalDomain>(&*both)) {
    for (const ParamValue& choice : choices->choices) {
      result.allowed.choices.push_back(CodeOf(parameter, choice));
    }
  } else if (const auto* real = std::get_if<FloatDomain>(&*both)) {
    result.allowed.low = CodeOf(parameter, real->low);
    result.allowed.high = CodeOf(parameter, LastValue(*real));
  } else {
    const IntDomain& integers = std::get<IntDomain>(*both);
    result.allowed.low = CodeOf(parameter, integers.low);
    result.allowed.high = CodeOf(parameter, LastValue(integers));
  }
  return result;
}

double CodedSpace::CodeOf(size_t parameter, const ParamValue& value) const {
  const Domain& domain = space_.parameters[parameter].domain;
  if (const auto* choices = std::get_if<CategoricalDomain>(&domain)) {
    return IndexIn(choices->choices, value);
  }
  if (const auto* integers = std::get_if<IntDomain>(&domain)) {
    return static_cast<double>((std::get<int64_t>(value) - integers->low) / integers->step);
  }
  const FloatDomain& real = std::get<FloatDomain>(domain);
  const double number = std::get<double>(value);
  if (real.step.has_value()) return std::round((number - real.low) / *real.step);
  return coded_[parameter].scale->At(number).at;
}

ParamValue CodedSpace::ValueOf(size_t parameter, double code) const {
  const Domain& domain = space_.parameters[parameter].domain;
  if (const auto* choices = std::get_if<CategoricalDomain>(&domain)) {
    return choices->choices[static_cast<size_t>(code)];
  }
  if (const auto* integers = std::get_if<IntDomain>(&domain)) {
    return integers->low + static_cast<int64_t>(code) * integers->step;
  }
  const FloatDomain& real = std::get<FloatDomain>(domain);
  if (real.step.has_value()) return std::min(real.low + code * *real.step, real.high);
  return coded_[parameter].scale->ValueAt(code);
}

bool CodedSpace::all_continuous() const {
  for (size_t i = 0; i < coded_.size(); ++i) {
    if (!space_.parameters[i].modelled || constant(i)) continue;
    if (coded_[i].kind != Kind::kContinuous || !coded_[i].when.empty()) return false;
  }
  return true;
}

std::optional<Codes> CodedSpace::Encode(const ParamMap& params) const {
  Codes codes(coded_.size(), kNoNumber);
  for (size_t i = 0; i < coded_.size(); ++i) {
    const Parameter& parameter = space_.parameters[i];
    const auto found = params.find(parameter.name);
    if (found == params.end()) {
      if (parameter.when.empty()) return std::nullopt;
      continue;
    }
    const bool known = Contains(parameter.domain, found->second);
    if (!known && coded_[i].kind != Kind::kChoice) return std::nullopt;
    codes[i] = CodeOf(i, found->second);
  }
  return codes;
}

std::optional<ParamMap> CodedSpace::Decode(const Codes& codes) const {
  ParamMap params;
  for (size_t i = 0; i < coded_.size(); ++i) {
    const Parameter& parameter = space_.parameters[i];
    if (!Holds(space_, parameter.when, params)) continue;
    const std::optional<Domain> allowed = AllowedDomain(space_, parameter, params);
    if (!allowed.has_value() || std::isnan(codes[i])) return std::nullopt;
    ParamValue value = ValueOf(i, codes[i]);
    if (coded_[i].kind == Kind::kContinuous) value = NearestValue(*allowed, *AsNumber(value));
    if (!Contains(*allowed, value)) return std::nullopt;
    params.emplace(parameter.name, std::move(value));
  }
  return params;
}

bool CodedSpace::HoldAll(const std::vector<CodedCondition>& conditions, const Codes& codes) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const CodedCondition& condition) {
    return Includes(condition.codes, codes[condition.parameter]);
  });
}

bool CodedSpace::Active(size_t parameter, const Codes& codes) const {
  return HoldAll(coded_[parameter].when, codes);
}

std::optional<AllowedCodes> CodedSpace::Allowed(size_t parameter, const Codes& codes) const {
  const CodedParameter& coded = coded_[parameter];
  AllowedCodes allowed{.low = 0.0, .high = coded.last};
  for (const CodedNarrowing& narrowing : coded.narrowings) {
    if (!HoldAll(narrowing.when, codes)) continue;
    if (narrowing.nothing) return std::nullopt;
    if (coded.kind != Kind::kChoice) {
      allowed.low = std::max(allowed.low, narrowing.allowed.low);
      allowed.high = std::min(allowed.high, narrowing.allowed.high);
      if (allowed.low > allowed.high) return std::nullopt;
      continue;
    }
    std::vector<double> both;
    for (const double code : narrowing.allowed.choices) {
      if (allowed.Contains(code)) both.push_back(code);
    }
    if (both.empty()) return std::nullopt;
    allowed.choices = std::move(both);
  }
  return allowed;
}

bool CodedSpace::Complete(Codes& codes, Rng& rng) const {
  for (size_t i = 0; i < coded_.size(); ++i) {
    if (!Active(i, codes)) {
      codes[i] = kNoNumber;
      continue;
    }
    const std::optional<AllowedCodes> allowed = Allowed(i, codes);
    if (!allowed.has_value()) return false;
    if (!allowed->Contains(codes[i])) codes[i] = DrawCode(i, *allowed, rng);
  }
  return true;
}

double CodedSpace::DrawCode(size_t parameter, const AllowedCodes& allowed, Rng& rng) const {
  if (!allowed.choices.empty()) return allowed.choices[rng.Below(allowed.choices.size())];
  const CodedParameter& coded = coded_[parameter];
  if (coded.kind == Kind::kContinuous) {
    return allowed.low + rng.Uniform() * (allowed.high - allowed.low);
  }
  const auto* integers = std::get_if<IntDomain>(&space_.parameters[parameter].domain);
  if (integers == nullptr || !integers->log || allowed.low == allowed.high) {
    return allowed.low +
           static_cast<double>(rng.Below(static_cast<uint64_t>(allowed.high - allowed.low) + 1));
  }
  const Interval range = coded.scale->Covering(*AsNumber(ValueOf(parameter, allowed.low)),
                                               *AsNumber(ValueOf(parameter, allowed.high)));
  const double position = range.low + rng.Uniform() * (range.high - range.low);
  const ParamValue value = NearestValue(*integers, coded.scale->ValueAt(position));
  return std::clamp(CodeOf(parameter, value), allowed.low, allowed.high);
}

double CodedSpace::Position(size_t parameter, double code) const {
  const CodedParameter& coded = coded_[parameter];
  if (coded.kind == Kind::kContinuous) return code;
  if (!coded.positions.empty()) return coded.positions[static_cast<size_t>(code)];
  return coded.scale->At(*AsNumber(ValueOf(parameter, code))).at;
}

}  // namespace hpo::sampler
