// The values of one parameter as numbers: a choice or a value on a grid is its index, a continuous
// value its position in [0, 1] on its scale (numeric_scale.h).
// Immutable; safe to share between threads.
#pragma once

#include <optional>
#include <vector>

#include "common/base/random.h"
#include "common/space/params.h"
#include "common/space/search_space.h"
#include "sampler/space/numeric_scale.h"

namespace hpo::sampler {

// Stands for a choice that the space does not offer (any more).
constexpr double kUnknownChoice = -1.0;

// The codes that a parameter may take together with given others.
struct AllowedCodes {
  double low = 0.0;
  double high = 0.0;
  // Of a choice, where narrowed: the indices left, ascending. Then low and high mean nothing.
  std::vector<double> choices;

  bool Contains(double code) const;
};

class ParameterCodes {
 public:
  enum class Kind { kContinuous, kGrid, kChoice };

  // `domain` must outlive this object.
  explicit ParameterCodes(const Domain& domain);

  Kind kind() const { return kind_; }
  double last() const { return last_; }  // the largest code

  double CodeOf(const ParamValue& value) const;
  ParamValue ValueOf(double code) const;

  // Where a number's code lies in [0, 1].
  double Position(double code) const;

  // One of `allowed`, uniformly in value; with log in its logarithm.
  double Draw(const AllowedCodes& allowed, Rng& rng) const;

 private:
  const Domain* domain_;
  Kind kind_ = Kind::kChoice;
  double last_ = 0.0;
  std::optional<NumericScale> scale_;
  std::vector<double> positions_;  // by code, of a grid of few values
};

}  // namespace hpo::sampler
