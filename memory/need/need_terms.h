// The products of parameters that a learnt need is a sum of (learned_need.h says why).
// Immutable after construction; safe from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/space/params.h"
#include "common/space/search_space.h"

namespace hpo::memory {

// A configuration as the terms see it. What it does not have is nullopt.
struct NeedPoint {
  std::vector<std::optional<double>> numbers;
  std::vector<std::optional<ParamValue>> choices;
  bool operator==(const NeedPoint&) const = default;
};

class NeedTerms {
 public:
  // As many products as kMaxTerms allows: of degree 4 at most.
  static constexpr size_t kMaxTerms = 512;

  NeedTerms() = default;

  // Of the parameters that `relevant` names; empty: those that are whole numbers, and choices.
  // Numbers among the choices count as numbers. Parameters that are not modelled, or have one value
  // only, are left out.
  NeedTerms(const SearchSpace& space, const std::vector<std::string>& relevant);

  size_t size() const { return terms_.size(); }
  size_t num_numbers() const { return numbers_.size(); }
  size_t num_choices() const { return choices_.size(); }

  // Values of another type than the parameter's count as absent.
  NeedPoint PointOf(const ParamMap& params) const;

  // At least 0, finite: every factor is scaled by the largest value of its parameter. 0 where a
  // factor is absent, or the term is another choice's.
  double Value(size_t term, const NeedPoint& point) const;

  // Whether the term grows, or shrinks, with the number.
  bool GrowsWith(size_t term, size_t number) const;
  bool ShrinksWith(size_t term, size_t number) const;

  // These terms alone, in this order.
  NeedTerms Select(const std::vector<size_t>& terms) const;

 private:
  enum class Power { kNone, kInverse, kLinear, kSquare, kExponential };
  struct Number {
    std::string name;
    double origin = 0.0;  // what counts as 0
    double low = 0.0;     // from the origin
    double high = 1.0;    // likewise
    bool exponential = false;
  };
  struct Term {
    std::vector<Power> powers;       // of each number
    size_t choice = 0;               // of which parameter, where the term is one value's
    std::optional<ParamValue> with;  // that value; nullopt: common to all
  };

  static std::optional<Number> NumberOf(const Parameter& parameter);
  static double Factor(const Number& number, Power power, double value);
  std::vector<Power> PowersOf(const Number& number) const;
  // All products of degree at most `degree`; empty where they are more than `limit`.
  std::vector<std::vector<Power>> Products(int degree, size_t limit) const;

  std::vector<Number> numbers_;
  std::vector<std::string> choices_;
  std::vector<Term> terms_;
};

}  // namespace hpo::memory
