// Reproducible random numbers: Philox4x32-10, a counter-based generator, keyed by
// (seed, stream). The same key gives the same numbers on every machine and for any order in which
// streams are used, so a trial's draws depend on the study's seed and the trial's number alone.
// Distributions are our own, because the standard library's differ between implementations.
// Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
#pragma once

#include <array>
#include <cstdint>

namespace hpo {

class Rng {
 public:
  Rng(uint64_t seed, uint64_t stream);

  uint32_t NextU32();
  uint64_t NextU64();

  // Uniform in [0, 1), 53 bits.
  double Uniform();

  // Uniform in {0, ..., n - 1}, unbiased. n > 0.
  uint64_t Below(uint64_t n);

 private:
  void Refill();

  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace hpo
