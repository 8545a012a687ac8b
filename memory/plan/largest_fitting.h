// The search for the largest batch that fits.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/status.h"

namespace hpo::memory {

// The largest n from 1 to `most` for which `fits`, a function of n that returns
// absl::StatusOr<bool>, is true; 0: none. It need not be monotone: segments come in pieces, and a
// batch may need less than the next smaller one. So all are tried from above, from where `may_fit`
// begins: true of every n that fits, and of all below one of which it is true. About log2(most)
// calls of the latter, and as many of the former as n may and do not fit.
//   what the two return
template <typename MayFit, typename Fits>
absl::StatusOr<int64_t> LargestFitting(int64_t most, MayFit may_fit, Fits fits) {
  int64_t below = 0;
  int64_t above = most + 1;
  while (above - below > 1) {
    const int64_t middle = below + (above - below) / 2;
    HPO_ASSIGN_OR_RETURN(const bool may, may_fit(middle));
    (may ? below : above) = middle;
  }
  for (int64_t n = below; n > 0; --n) {
    HPO_ASSIGN_OR_RETURN(const bool does, fits(n));
    if (does) return n;
  }
  return 0;
}

}  // namespace hpo::memory
