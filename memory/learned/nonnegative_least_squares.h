// Least squares with non-negative coefficients, for a few hundred rows and columns.
// Pure and deterministic; safe from any thread.
// Source: Lawson & Hanson 1974, Solving Least Squares Problems, chapter 23.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hpo::memory {

// Column-major; all columns are equally long.
using Columns = std::vector<std::vector<double>>;

// A solution: the columns that take part, in ascending order, each with its positive coefficient.
struct NonNegativeFit {
  std::vector<size_t> columns;
  std::vector<double> coefficients;
  // (A'A)^-1 over `columns`, row by row. x' inverse x is the leverage of a row x over `columns`:
  // for rows of the fit in [0, 1], near 1 where a row determines its own prediction.
  std::vector<double> inverse;
  double Predict(std::span<const double> row) const;   // row: one value per column of the fit
  double Leverage(std::span<const double> row) const;  // likewise
};

// The x >= 0 that minimises |A x - b|. Columns that are zero or depend on others, to about 3e-5 of
// their length, get no part. Entries are finite.
NonNegativeFit FitNonNegative(const Columns& a, std::span<const double> b);

}  // namespace hpo::memory
