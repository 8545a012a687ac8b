// Sobol's sequence: points of the unit cube of which every block of 2^k fills all boxes alike, so
// that few points tell of the whole cube. Pure; safe from any thread.
//
// Direction numbers: Joe & Kuo 2008, "Constructing Sobol sequences with better two-dimensional
// projections" (new-joe-kuo-6, THIRD_PARTY.md). Order of points: Gray code (Antonov & Saleev 1979),
// as SciPy's. Golden data: scripts/reference/sobol.py.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hpo::sampler {

// Further dimensions would need higher polynomials; at the number of trials that a study has, they
// are no better than random.
constexpr size_t kSobolDimensions = 64;

// Coordinate `dimension` (< kSobolDimensions) of point `index`, as 32 binary digits after the
// point, the most significant first. Point 0 is the corner.
uint32_t SobolDigits(uint32_t index, size_t dimension);

// Owen's nested uniform scrambling: each digit is flipped or not by a hash of `key` and the digits
// before it. Keeps what makes the sequence even, and makes each point uniform in the cube.
// Source: Owen 1995, "Randomly permuted (t,m,s)-nets and (t,s)-sequences".
uint32_t OwenScramble(uint32_t digits, uint64_t key);

// Coordinate `dimension` of point `index` of the sequence scrambled by `seed`, in (0, 1).
double ScrambledSobol(uint64_t seed, uint32_t index, size_t dimension);

}  // namespace hpo::sampler
