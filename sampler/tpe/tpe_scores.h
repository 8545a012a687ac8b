// TPE's acquisition of a set of candidates: a product of factors, kept as natural logarithms.
// One owner thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hpo::sampler {

class TpeScores {
 public:
  explicit TpeScores(size_t num_candidates) : totals_(num_candidates, 0.0) {}

  // Takes in a factor by what it is of ("memory") and its logarithm at each candidate, to the power
  // of `exponent`. What comes out NaN is -infinity.
  void Multiply(const std::string& name, std::vector<double> logs, double exponent = 1.0);

  // By candidate; larger is better, never NaN.
  const std::vector<double>& totals() const { return totals_; }

  // What decided for the candidate `chosen`, in words. Where there are several factors, the one
  // that decided is the one by which it is furthest ahead of the middle one of all candidates.
  std::string Explain(size_t chosen) const;

 private:
  struct Factor {
    std::string name;
    std::vector<double> logs;  // by candidate, the exponent in them

    // How far the candidate is ahead of the upper median of all.
    double Lead(size_t chosen) const;
  };

  std::vector<double> totals_;
  std::vector<Factor> factors_;
};

}  // namespace hpo::sampler
