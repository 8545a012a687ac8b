// A trial's values by step, with what pruners ask of a whole curve at each of its reports: it is
// kept up as values come, so that a report costs the same after 20,000 others. Equal to a curve
// that is built again from the same values, to the last bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <utility>

namespace hpo::sampler {

// Read as a std::map is.
class Curve {
 public:
  using Values = std::map<int64_t, double>;
  using value_type = Values::value_type;
  using const_iterator = Values::const_iterator;
  using iterator = const_iterator;

  Curve() = default;
  Curve(std::initializer_list<value_type> values) : Curve(Values(values)) {}
  Curve(Values values);  // NOLINT(google-explicit-constructor): a curve is what its values are

  // Keeps the value that is there, and is then false. O(log size) after the last step; within the
  // curve O(size).
  bool Add(int64_t step, double value);

  const_iterator begin() const { return values_.begin(); }
  const_iterator end() const { return values_.end(); }
  auto rbegin() const { return values_.rbegin(); }
  auto rend() const { return values_.rend(); }
  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  double at(int64_t step) const { return values_.at(step); }
  const_iterator find(int64_t step) const { return values_.find(step); }
  const_iterator lower_bound(int64_t step) const { return values_.lower_bound(step); }
  const_iterator upper_bound(int64_t step) const { return values_.upper_bound(step); }

  // The smallest of its values, NaN ignored; NaN where all are, or there is none.
  double best() const { return best_; }
  bool all_finite() const { return all_finite_; }
  // The widest between two steps that follow each other; 0 with fewer than two.
  int64_t widest_gap() const { return widest_gap_; }
  // Added up in the order of their steps. Not empty.
  double mean() const { return sum_ / static_cast<double>(values_.size()); }

  friend bool operator==(const Curve& a, const Curve& b) { return a.values_ == b.values_; }

 private:
  void Take(int64_t gap, double value);

  Values values_;
  double best_ = std::numeric_limits<double>::quiet_NaN();
  bool all_finite_ = true;
  int64_t widest_gap_ = 0;
  double sum_ = 0.0;
};

}  // namespace hpo::sampler
