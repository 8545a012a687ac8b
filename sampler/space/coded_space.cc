#include "sampler/space/coded_space.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sampler/numeric/portable_math.h"

namespace hpo::sampler {
namespace {

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

CodedSpace::CodedSpace(const SearchSpace& space) : space_(space) {
  for (const Parameter& parameter : space.parameters) {
    coded_.push_back({.codes = ParameterCodes(parameter.domain)});
  }
  for (size_t i = 0; i < coded_.size(); ++i) {
    coded_[i].when = CodeConditions(space.parameters[i].when);
    for (const Narrowing& narrowing : space.narrowings) {
      if (narrowing.name != space.parameters[i].name) continue;
      coded_[i].narrowings.push_back(CodeNarrowing(i, narrowing));
    }
  }
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
        coded.codes.push_back(coded_[*parent].codes.CodeOf(value));
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
  const ParameterCodes& codes = coded_[parameter].codes;
  const Domain& domain = space_.parameters[parameter].domain;
  const std::optional<Domain> both = Intersect(domain, narrowing.domain);
  result.nothing = !both.has_value();
  if (result.nothing) return result;
  if (const auto* choices = std::get_if<CategoricalDomain>(&*both)) {
    for (const ParamValue& choice : choices->choices) {
      result.allowed.choices.push_back(codes.CodeOf(choice));
    }
  } else if (const auto* real = std::get_if<FloatDomain>(&*both)) {
    result.allowed.low = codes.CodeOf(real->low);
    result.allowed.high = codes.CodeOf(LastValue(*real));
  } else {
    const IntDomain& integers = std::get<IntDomain>(*both);
    result.allowed.low = codes.CodeOf(integers.low);
    result.allowed.high = codes.CodeOf(LastValue(integers));
  }
  return result;
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
    if (!known && kind(i) != Kind::kChoice) return std::nullopt;
    codes[i] = coded_[i].codes.CodeOf(found->second);
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
    ParamValue value = coded_[i].codes.ValueOf(codes[i]);
    if (kind(i) == Kind::kContinuous) value = NearestValue(*allowed, *AsNumber(value));
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
  AllowedCodes allowed{.low = 0.0, .high = coded.codes.last()};
  for (const CodedNarrowing& narrowing : coded.narrowings) {
    if (!HoldAll(narrowing.when, codes)) continue;
    if (narrowing.nothing) return std::nullopt;
    if (coded.codes.kind() != Kind::kChoice) {
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
    if (!allowed->Contains(codes[i])) codes[i] = coded_[i].codes.Draw(*allowed, rng);
  }
  return true;
}

}  // namespace hpo::sampler
