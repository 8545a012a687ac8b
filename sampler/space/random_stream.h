// Which random numbers belong to what. A trial's draws depend on the study's seed, the trial's
// number and their purpose alone, so a restart or another order of asking changes nothing.
#pragma once

#include <cstdint>

#include "common/base/ids.h"
#include "common/base/random.h"

namespace hpo::sampler {

enum class StreamPurpose : uint64_t {
  kRandomConfiguration = 0,
  kCandidates = 1,
  kWithinCell = 2,
  kUntried = 3,
};

// Trial numbers below 2^61.
inline Rng StreamFor(uint64_t seed, TrialNumber number, StreamPurpose purpose) {
  constexpr int kPurposeBits = 2;
  return Rng(
      seed, (static_cast<uint64_t>(number.value) << kPurposeBits) | static_cast<uint64_t>(purpose));
}

}  // namespace hpo::sampler
