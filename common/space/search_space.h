// The search space: parameters with a domain, optional conditions on their parents, and
// constraints that narrow a parameter when others take given values.
//
// A narrowed parameter keeps its full domain (one density over the full range); a narrowing only
// says which values a candidate may take. All functions here are pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/space/params.h"

namespace hpo {

// A real number in [low, high]; with `step` on the grid low + k*step (never with log).
struct FloatDomain {
  double low = 0.0;
  double high = 1.0;
  std::optional<double> step;
  bool log = false;
  bool operator==(const FloatDomain&) const = default;
};

// An integer in [low, high] on the grid low + k*step; step is 1 with log.
struct IntDomain {
  int64_t low = 0;
  int64_t high = 1;
  int64_t step = 1;
  bool log = false;
  bool operator==(const IntDomain&) const = default;
};

// One of `choices`, of any types, no duplicates. Types tell values apart (true, 1, "1", null), but
// for numbers: 1 and 1.0 are equal, so one of them may be a choice. Choices may be added to a
// running study.
struct CategoricalDomain {
  std::vector<ParamValue> choices;
  bool operator==(const CategoricalDomain&) const = default;
};

using Domain = std::variant<FloatDomain, IntDomain, CategoricalDomain>;

// Parameter `name` has one of `values`. `name` may also be a model fact: "model.class" (heavy or
// base) or "model.family".
struct Condition {
  std::string name;
  std::vector<ParamValue> values;
  bool operator==(const Condition&) const = default;
};

struct Parameter {
  std::string name;
  Domain domain;
  // All must hold for the parameter to exist in a configuration.
  std::vector<Condition> when;
  // false: drawn at random, never modelled by the sampler (such as `seed`).
  bool modelled = true;
  // What the study's first trial takes; parameters without one are drawn.
  std::optional<ParamValue> default_value;
  bool operator==(const Parameter&) const = default;
};

// When all conditions hold, the named parameter must also lie in `domain`.
struct Narrowing {
  std::vector<Condition> when;
  std::string name;
  Domain domain;
  bool operator==(const Narrowing&) const = default;
};

struct SearchSpace {
  // Parents before children.
  std::vector<Parameter> parameters;
  std::vector<Narrowing> narrowings;
  // Facts about each choice of model.name, for conditions: name -> {"model.class": "heavy", ...}.
  std::map<std::string, ParamMap> model_facts;

  bool operator==(const SearchSpace&) const = default;
  const Parameter* Find(absl::string_view name) const;
};

// The model facts that conditions may name.
constexpr char kModelNameParameter[] = "model.name";
constexpr char kModelClassFact[] = "model.class";    // "heavy" or "base"
constexpr char kModelFamilyFact[] = "model.family";  // "bert", "roberta", ...

// Whether `value` has the domain's type and lies in it, on its grid.
bool Contains(const Domain& domain, const ParamValue& value);

// For values that people and other programs give: an integer where `domain` is of real numbers
// becomes one, and a number that equals a choice of the other type of number becomes that choice.
// Anything else stays as it is.
ParamValue Coerce(const Domain& domain, const ParamValue& value);

// Whether every condition holds in `params` (model facts looked up by params["model.name"]).
bool Holds(const SearchSpace& space, const std::vector<Condition>& conditions,
           const ParamMap& params);

// The domain `parameter` may take given the values of its parents in `params`: its own domain cut
// by every narrowing whose conditions hold. nullopt when narrowings leave nothing.
std::optional<Domain> AllowedDomain(const SearchSpace& space, const Parameter& parameter,
                                    const ParamMap& params);

// The intersection of two domains of one kind (the grid is `a`'s); nullopt when empty.
std::optional<Domain> Intersect(const Domain& a, const Domain& b);

// Whether `params` is a complete configuration of the space: every active parameter present and in
// its allowed domain, nothing inactive or unknown.
//   InvalidArgument  names the first parameter at fault: expected domain, value given
absl::Status ValidateParams(const SearchSpace& space, const ParamMap& params);

// Number of grid values; nullopt for a continuous domain.
std::optional<int64_t> NumValues(const Domain& domain);

// "{8, 12, 16}", "[128, 512] step 32", "[1e-06, 0.0001] log".
std::string FormatDomain(const Domain& domain);

}  // namespace hpo
