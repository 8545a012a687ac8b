// Tested by tests/common/space/search_space_test.cc.
#include "common/space/search_space_validation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/space/search_space.h"
#include "common/space/value_set.h"

namespace hpo {
namespace {

constexpr int64_t kMaxExact = int64_t{1} << 53;

absl::Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

absl::Status CheckCount(size_t count, const Limit& limit) {
  if (count <= static_cast<size_t>(limit.most)) return absl::OkStatus();
  return Invalid(absl::StrCat("expected at most ", limit.most, " ", limit.what, ", got ", count));
}

absl::Status CheckDomain(const FloatDomain& domain) {
  const std::string range = FormatDomain(domain);
  if (!std::isfinite(domain.low) || !std::isfinite(domain.high)) {
    return Invalid(absl::StrCat("expected finite bounds, got ", range));
  }
  if (!(domain.low < domain.high)) {
    return Invalid(absl::StrCat("expected low < high, got ", range));
  }
  if (domain.log && domain.low <= 0.0) {
    return Invalid(absl::StrCat("expected low > 0 with log, got ", range));
  }
  if (!domain.step.has_value()) return absl::OkStatus();
  if (domain.log) return Invalid(absl::StrCat("expected step or log, got both in ", range));
  if (!std::isfinite(*domain.step) || *domain.step <= 0.0) {
    return Invalid(absl::StrCat("expected step > 0, got ", range));
  }
  if ((domain.high - domain.low) / *domain.step > static_cast<double>(kMaxExact)) {
    return Invalid(absl::StrCat("expected at most 2^53 steps, got ", range));
  }
  return absl::OkStatus();
}

absl::Status CheckDomain(const IntDomain& domain) {
  const std::string range = FormatDomain(domain);
  if (domain.low > domain.high) {
    return Invalid(absl::StrCat("expected low <= high, got ", range));
  }
  if (domain.low < -kMaxExact || domain.high > kMaxExact) {
    return Invalid(absl::StrCat("expected bounds within -2^53 and 2^53, got ", range));
  }
  if (domain.step < 1) return Invalid(absl::StrCat("expected step >= 1, got ", range));
  if (domain.step > kMaxExact) return Invalid(absl::StrCat("expected step <= 2^53, got ", range));
  if (domain.log && domain.low < 1) {
    return Invalid(absl::StrCat("expected low >= 1 with log, got ", range));
  }
  if (domain.log && domain.step != 1) {
    return Invalid(absl::StrCat("expected step or log, got both in ", range));
  }
  return absl::OkStatus();
}

// A real number without a fraction as the whole number that it equals; else the value itself.
ParamValue WholeIfEqual(const ParamValue& value) {
  const double* const real = std::get_if<double>(&value);
  const bool whole = real != nullptr && std::abs(*real) <= static_cast<double>(kMaxExact) &&
                     std::trunc(*real) == *real;
  return whole ? ParamValue(static_cast<int64_t>(*real)) : value;
}

absl::Status CheckDomain(const CategoricalDomain& domain) {
  if (domain.choices.empty()) return Invalid("expected at least one choice, got none");
  HPO_RETURN_IF_ERROR(CheckCount(domain.choices.size(), kChoiceLimit));
  std::set<ParamValue> seen;
  for (const ParamValue& choice : domain.choices) {
    if (const double* number = std::get_if<double>(&choice); number && !std::isfinite(*number)) {
      return Invalid(absl::StrCat("expected finite choices, got ", FormatParam(choice)));
    }
    if (const std::string* text = std::get_if<std::string>(&choice);
        text && text->size() > static_cast<size_t>(kTextLimit.most)) {
      return Invalid(absl::StrCat("expected choices of at most ", kTextLimit.most, " bytes, got ",
                                  text->size(), ": ", Quoted(*text)));
    }
    if (seen.insert(WholeIfEqual(choice)).second) continue;
    const auto same = std::count(domain.choices.begin(), domain.choices.end(), choice);
    return Invalid(absl::StrCat("expected distinct choices, got ", ShowParam(choice), " twice",
                                same < 2 ? " (as numbers, 1 and 1.0 are equal)" : ""));
  }
  return absl::OkStatus();
}

bool IsName(absl::string_view name) {
  if (name.empty()) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') {
      return false;
    }
  }
  return true;
}

// `conditions` may name the parameters before `end` and the facts of a model.name among them.
absl::Status CheckConditions(const SearchSpace& space, size_t end,
                             const std::vector<Condition>& conditions) {
  for (const Condition& condition : conditions) {
    const bool fact = condition.name == kModelClassFact || condition.name == kModelFamilyFact;
    const std::string name = fact ? kModelNameParameter : condition.name;
    const Parameter* parent = nullptr;
    for (size_t i = 0; i < end && parent == nullptr; ++i) {
      if (space.parameters[i].name == name) parent = &space.parameters[i];
    }
    if (parent == nullptr) {
      return Invalid(
          absl::StrCat("when: expected a parameter that comes before, got '", condition.name, "'"));
    }
    if (condition.values.empty()) {
      return Invalid(absl::StrCat("when.", condition.name, ": expected at least one value"));
    }
    // Choices of model.name come and go with what the user and the workers have.
    if (name == kModelNameParameter) continue;
    const ValueSet allowed(parent->domain);
    for (const ParamValue& value : condition.values) {
      if (!allowed.Has(value)) {
        return Invalid(absl::StrCat("when.", condition.name, ": expected a value in ",
                                    FormatDomain(parent->domain), ", got ", FormatParam(value)));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status NotInside(const Domain& outer, const Domain& inner) {
  return Invalid(
      absl::StrCat("expected a part of ", FormatDomain(outer), ", got ", FormatDomain(inner)));
}

absl::Status CheckInside(const FloatDomain& outer, const FloatDomain& inner) {
  if (outer.step != inner.step || outer.log != inner.log) return NotInside(outer, inner);
  if (inner.low < outer.low || inner.high > outer.high) return NotInside(outer, inner);
  if (outer.step.has_value() && !Contains(outer, inner.low)) return NotInside(outer, inner);
  return absl::OkStatus();
}

absl::Status CheckInside(const IntDomain& outer, const IntDomain& inner) {
  if (outer.step != inner.step || outer.log != inner.log) return NotInside(outer, inner);
  if (!Contains(outer, inner.low) || inner.high > outer.high) return NotInside(outer, inner);
  return absl::OkStatus();
}

absl::Status CheckInside(const CategoricalDomain& outer, const CategoricalDomain& inner) {
  const Domain whole = outer;
  const ValueSet allowed(whole);
  for (const ParamValue& choice : inner.choices) {
    if (!allowed.Has(choice)) return NotInside(outer, inner);
  }
  return absl::OkStatus();
}

// A narrowing keeps the kind and grid of its parameter and lies inside its range.
absl::Status CheckInside(const Domain& outer, const Domain& inner) {
  return std::visit(
      [&](const auto& left, const auto& right) -> absl::Status {
        if constexpr (std::is_same_v<decltype(left), decltype(right)>) {
          return CheckInside(left, right);
        } else {
          return NotInside(outer, inner);
        }
      },
      outer, inner);
}

// Position of the parameter called `name`, or the number of parameters.
size_t IndexOf(const SearchSpace& space, const std::string& name) {
  size_t index = 0;
  while (index < space.parameters.size() && space.parameters[index].name != name) ++index;
  return index;
}

absl::Status CheckNarrowing(const SearchSpace& space, const Narrowing& narrowing) {
  const size_t index = IndexOf(space, narrowing.name);
  if (index == space.parameters.size()) {
    return Invalid("expected a parameter of the study, got an unknown one");
  }
  if (narrowing.when.empty()) return Invalid("when: expected at least one condition");
  HPO_RETURN_IF_ERROR(CheckConditions(space, index, narrowing.when));
  HPO_RETURN_IF_ERROR(ValidateDomain(narrowing.domain));
  return CheckInside(space.parameters[index].domain, narrowing.domain);
}

absl::Status CheckParameter(const SearchSpace& space, size_t index) {
  const Parameter& parameter = space.parameters[index];
  if (!IsName(parameter.name) || parameter.name.size() > static_cast<size_t>(kNameLimit.most)) {
    return Invalid(absl::StrCat("expected a name of letters, digits, '.', '_' and '-', at most ",
                                kNameLimit.most, " of them"));
  }
  if (parameter.name == kModelClassFact || parameter.name == kModelFamilyFact) {
    return Invalid("this name is kept for what is known of model.name");
  }
  if (IndexOf(space, parameter.name) != index) return Invalid("there are two of this name");
  HPO_RETURN_IF_ERROR(ValidateDomain(parameter.domain));
  HPO_RETURN_IF_ERROR(CheckConditions(space, index, parameter.when));
  if (parameter.default_value.has_value() &&
      !Contains(parameter.domain, *parameter.default_value)) {
    return Invalid(absl::StrCat("default: expected a value in ", FormatDomain(parameter.domain),
                                ", got ", FormatParam(*parameter.default_value)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateDomain(const Domain& domain) {
  return std::visit([](const auto& held) { return CheckDomain(held); }, domain);
}

absl::Status ValidateParameter(const SearchSpace& space, size_t index) {
  return Annotate(CheckParameter(space, index),
                  absl::StrCat("parameters.", space.parameters[index].name));
}

absl::Status ValidateNarrowing(const SearchSpace& space, const Narrowing& narrowing) {
  return Annotate(CheckNarrowing(space, narrowing), absl::StrCat("constraints: ", narrowing.name));
}

absl::Status ValidateSpace(const SearchSpace& space) {
  HPO_RETURN_IF_ERROR(Annotate(CheckCount(space.parameters.size(), kParameterLimit), "parameters"));
  HPO_RETURN_IF_ERROR(
      Annotate(CheckCount(space.narrowings.size(), kConditionLimit), "constraints"));
  for (size_t i = 0; i < space.parameters.size(); ++i) {
    HPO_RETURN_IF_ERROR(ValidateParameter(space, i));
  }
  for (const Narrowing& narrowing : space.narrowings) {
    HPO_RETURN_IF_ERROR(ValidateNarrowing(space, narrowing));
  }
  return absl::OkStatus();
}

}  // namespace hpo
