// Pauses between attempts to reach a server: doubling, with jitter so that workers that lost it
// together do not come back together. One thread at a time.
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "common/base/random.h"

namespace hpo::agent {

class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration longest, uint64_t seed)
      : first_(first), longest_(longest), next_(first), rng_(seed, /*stream=*/0) {}

  // The pause before the next attempt: within 20 % of first, 2 x first, 4 x first ... longest.
  absl::Duration Next() {
    const absl::Duration pause = next_;
    next_ = std::min(longest_, 2 * next_);
    return pause * (0.8 + 0.4 * rng_.Uniform());
  }

  // After a success.
  void Reset() { next_ = first_; }

 private:
  absl::Duration first_;
  absl::Duration longest_;
  absl::Duration next_;
  Rng rng_;
};

}  // namespace hpo::agent
