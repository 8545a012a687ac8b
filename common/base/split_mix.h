// SplitMix64: well mixed 64-bit numbers of a counter. The n-th of a key, from 0, is
// SplitMix64(key + (n + 1) * kSplitMixStep), and can be had without those before it.
// Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
#pragma once

#include <cstdint>

namespace hpo {

inline constexpr uint64_t kSplitMixStep = 0x9E3779B97F4A7C15;

constexpr uint64_t SplitMix64(uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EB;
  return state ^ (state >> 31);
}

}  // namespace hpo
