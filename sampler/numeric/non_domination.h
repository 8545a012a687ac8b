// Which of many points, each of several losses, are beaten by others. A point dominates another
// where none of its losses is larger and one is smaller. Pure; safe from any thread.
// Source: efficient non-dominated sort, Zhang et al. 2015 (binary search over the fronts).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace hpo::sampler {

// The indices of points in lexicographic order, of equal ones in their own.
std::vector<size_t> LexicographicOrder(std::span<const std::vector<double>> points);

// For each point the number of rounds in which, removing the undominated ones, it is still there.
// Rounds end when `count` points are gone: what is left then shares the next rank.
// Points hold equally many losses, at least one, none of them NaN. O(n log n) for two losses;
// for more O(n m) times the points of the fronts that hold the best `count`, n^2 / 2 at most.
std::vector<size_t> NonDominationRanks(std::span<const std::vector<double>> points, size_t count);

// The indices, ascending, of the points that none dominates: those of rank 0.
//   Cancelled  `cancelled`, which is asked every thousand points, returned true
absl::StatusOr<std::vector<size_t>> UndominatedPoints(std::span<const std::vector<double>> points,
                                                      absl::FunctionRef<bool()> cancelled);

}  // namespace hpo::sampler
