// Configurations as plain numbers, for a search that looks at thousands of them: one code per
// parameter of the space, in its order. A choice or a value on a grid is its index, a continuous
// value its position in [0, 1] on its scale (numeric_scale.h), NaN an inactive parameter.
// Conditions and narrowings are resolved to codes once. Immutable; safe to share between threads.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "common/base/random.h"
#include "common/space/params.h"
#include "common/space/search_space.h"
#include "sampler/space/parameter_codes.h"

namespace hpo::sampler {

using Codes = std::vector<double>;

class CodedSpace {
 public:
  using Kind = ParameterCodes::Kind;

  // `space` must outlive this object.
  explicit CodedSpace(const SearchSpace& space);

  const SearchSpace& space() const { return space_; }
  size_t size() const { return coded_.size(); }
  Kind kind(size_t parameter) const { return coded_[parameter].codes.kind(); }
  // Whether it has one value only.
  bool constant(size_t parameter) const { return coded_[parameter].codes.last() == 0.0; }

  // nullopt where an unconditional parameter has no value, or a number is not in its domain.
  std::optional<Codes> Encode(const ParamMap& params) const;

  // A valid configuration; codes that rounding took off an allowed value are moved to the nearest.
  // nullopt where constraints leave a parameter no value.
  std::optional<ParamMap> Decode(const Codes& codes) const;

  // Whether the parameter exists together with the codes before it.
  bool Active(size_t parameter, const Codes& codes) const;

  // What the parameter may take together with the codes before it; nullopt for nothing.
  std::optional<AllowedCodes> Allowed(size_t parameter, const Codes& codes) const;

  // Makes `codes` a valid configuration: each parameter that is active keeps its code where that is
  // allowed and is drawn uniformly (in value; with log in its logarithm) where not; the others
  // become NaN. False where a parameter is left no value.
  bool Complete(Codes& codes, Rng& rng) const;

  // Where a number's code lies in [0, 1].
  double Position(size_t parameter, double code) const {
    return coded_[parameter].codes.Position(code);
  }

 private:
  // Holds where the code of `parameter` is one of `codes`.
  struct CodedCondition {
    size_t parameter = 0;
    std::vector<double> codes;
  };
  struct CodedNarrowing {
    std::vector<CodedCondition> when;
    AllowedCodes allowed;
    bool nothing = false;
  };
  struct CodedParameter {
    ParameterCodes codes;
    std::vector<CodedCondition> when;
    std::vector<CodedNarrowing> narrowings;
  };

  std::vector<CodedCondition> CodeConditions(const std::vector<Condition>& conditions) const;
  CodedNarrowing CodeNarrowing(size_t parameter, const Narrowing& narrowing) const;
  static bool HoldAll(const std::vector<CodedCondition>& conditions, const Codes& codes);

  const SearchSpace& space_;
  std::vector<CodedParameter> coded_;
};

}  // namespace hpo::sampler
