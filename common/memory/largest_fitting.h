// The search for the largest batch that fits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "common/status.h"

namespace hpo {

// The largest n from 1 to `most` for which `fits`, a function of n that returns
// absl::StatusOr<bool>, is true: doubling while everything fits, halving the gap after. 0: not
// even 1. Where fits is not monotone, one that fits while a larger one that was tried does not.
// About 2 log2(most) calls.
//   what `fits` returns
template <typename Fits>
absl::StatusOr<int64_t> LargestFitting(int64_t most, Fits fits) {
  int64_t fitting = 0;
  int64_t too_large = most + 1;
  for (int64_t next = 1; too_large - fitting > 1;) {
    HPO_ASSIGN_OR_RETURN(const bool next_fits, fits(next));
    (next_fits ? fitting : too_large) = next;
    next = too_large > most ? std::min(2 * fitting, most) : fitting + (too_large - fitting) / 2;
    if (next == fitting) break;
  }
  return fitting;
}

}  // namespace hpo
