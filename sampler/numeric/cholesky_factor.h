// The lower Cholesky factor L of a symmetric positive definite matrix A = L L', grown row by row.
//
// Every sum has one order, whatever the processor, and a factor that grew by Append equals bit for
// bit one built at once. Eigen's own decompositions promise neither: they cut large products
// to the caches of the machine.
// One owner; const members are safe from several threads.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hpo::sampler {

class CholeskyFactor {
 public:
  size_t size() const { return size_; }
  // The lower triangle of L, row by row.
  const std::vector<double>& rows() const { return rows_; }

  // Adds a row and column to A: `covariances` (size() of them) next to the `variance` on the
  // diagonal. A pivot that rounding made too small for the variance is raised to 1e-13 of it.
  void Append(std::span<const double> covariances, double variance);

  // Keeps the first `size` rows.
  void Truncate(size_t size);

  // x with L x = b and with L' x = b, in place, over the leading values.size() rows of L.
  void SolveLower(std::span<double> values) const;
  void SolveUpper(std::span<double> values) const;

  // L x; size() values.
  std::vector<double> Times(std::span<const double> values) const;

  // ln det A.
  double LogDeterminant() const;

  // The lower triangle of A's inverse, row by row: entry (i, j), j <= i, at i (i + 1) / 2 + j.
  std::vector<double> Inverse() const;

 private:
  const double* Row(size_t row) const { return rows_.data() + row * (row + 1) / 2; }

  std::vector<double> rows_;  // lower triangle, row by row
  size_t size_ = 0;
};

}  // namespace hpo::sampler
