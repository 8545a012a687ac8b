#include "sampler/simple/sobol_sequence.h"

#include <array>
#include <bit>

#include "common/base/split_mix.h"

namespace hpo::sampler {
namespace {

constexpr int kDigits = 32;

// What a dimension grows from.
struct Generator {
  // A primitive polynomial over two elements, its coefficients as bits; the highest is its
  // degree's.
  uint32_t polynomial;
  // As many odd numbers as its degree, the j-th below 2^(j+1).
  std::array<uint32_t, 9> initial;
};

// Of the second dimension on; the first is van der Corput's sequence.
constexpr std::array<Generator, kSobolDimensions - 1> kGenerators = {{
    {3, {1}},
    {7, {1, 3}},
    {11, {1, 3, 1}},
    {13, {1, 1, 1}},
    {19, {1, 1, 3, 3}},
    {25, {1, 3, 5, 13}},
    {37, {1, 1, 5, 5, 17}},
    {41, {1, 1, 5, 5, 5}},
    {47, {1, 1, 7, 11, 19}},
    {55, {1, 1, 5, 1, 1}},
    {59, {1, 1, 1, 3, 11}},
    {61, {1, 3, 5, 5, 31}},
    {67, {1, 3, 3, 9, 7, 49}},
    {91, {1, 1, 1, 15, 21, 21}},
    {97, {1, 3, 1, 13, 27, 49}},
    {103, {1, 1, 1, 15, 7, 5}},
    {109, {1, 3, 1, 15, 13, 25}},
    {115, {1, 1, 5, 5, 19, 61}},
    {131, {1, 3, 7, 11, 23, 15, 103}},
    {137, {1, 3, 7, 13, 13, 15, 69}},
    {143, {1, 1, 3, 13, 7, 35, 63}},
    {145, {1, 3, 5, 9, 1, 25, 53}},
    {157, {1, 3, 1, 13, 9, 35, 107}},
    {167, {1, 3, 1, 5, 27, 61, 31}},
    {171, {1, 1, 5, 11, 19, 41, 61}},
    {185, {1, 3, 5, 3, 3, 13, 69}},
    {191, {1, 1, 7, 13, 1, 19, 1}},
    {193, {1, 3, 7, 5, 13, 19, 59}},
    {203, {1, 1, 3, 9, 25, 29, 41}},
    {211, {1, 3, 5, 13, 23, 1, 55}},
    {213, {1, 3, 7, 3, 13, 59, 17}},
    {229, {1, 3, 1, 3, 5, 53, 69}},
    {239, {1, 1, 5, 5, 23, 33, 13}},
    {241, {1, 1, 7, 7, 1, 61, 123}},
    {247, {1, 1, 7, 9, 13, 61, 49}},
    {253, {1, 3, 3, 5, 3, 55, 33}},
    {285, {1, 3, 1, 15, 31, 13, 49, 245}},
    {299, {1, 3, 5, 15, 31, 59, 63, 97}},
    {301, {1, 3, 1, 11, 11, 11, 77, 249}},
    {333, {1, 3, 1, 11, 27, 43, 71, 9}},
    {351, {1, 1, 7, 15, 21, 11, 81, 45}},
    {355, {1, 3, 7, 3, 25, 31, 65, 79}},
    {357, {1, 3, 1, 1, 19, 11, 3, 205}},
    {361, {1, 1, 5, 9, 19, 21, 29, 157}},
    {369, {1, 3, 7, 11, 1, 33, 89, 185}},
    {391, {1, 3, 3, 3, 15, 9, 79, 71}},
    {397, {1, 3, 7, 11, 15, 39, 119, 27}},
    {425, {1, 1, 3, 1, 11, 31, 97, 225}},
    {451, {1, 1, 1, 3, 23, 43, 57, 177}},
    {463, {1, 3, 7, 7, 17, 17, 37, 71}},
    {487, {1, 3, 1, 5, 27, 63, 123, 213}},
    {501, {1, 1, 3, 5, 11, 43, 53, 133}},
    {529, {1, 3, 5, 5, 29, 17, 47, 173, 479}},
    {539, {1, 3, 3, 11, 3, 1, 109, 9, 69}},
    {545, {1, 1, 1, 5, 17, 39, 23, 5, 343}},
    {557, {1, 3, 1, 5, 25, 15, 31, 103, 499}},
    {563, {1, 1, 1, 11, 11, 17, 63, 105, 183}},
    {601, {1, 1, 5, 11, 9, 29, 97, 231, 363}},
    {607, {1, 1, 5, 15, 19, 45, 41, 7, 383}},
    {617, {1, 3, 7, 7, 31, 19, 83, 137, 221}},
    {623, {1, 1, 1, 3, 23, 15, 111, 223, 83}},
    {631, {1, 1, 5, 13, 31, 15, 55, 25, 161}},
    {637, {1, 1, 3, 13, 25, 47, 39, 87, 257}},
}};

using Directions = std::array<uint32_t, kDigits>;

constexpr Directions GrowDirections(const Generator& generator) {
  const int degree = std::bit_width(generator.polynomial) - 1;
  Directions directions{};
  for (int i = 0; i < kDigits; ++i) {
    const size_t at = static_cast<size_t>(i);
    if (i < degree) {
      directions[at] = generator.initial[at] << (kDigits - 1 - i);
      continue;
    }
    const uint32_t oldest = directions[static_cast<size_t>(i - degree)];
    directions[at] = oldest ^ (oldest >> degree);
    for (int j = 1; j < degree; ++j) {
      if ((generator.polynomial >> (degree - j) & 1U) == 0) continue;
      directions[at] ^= directions[static_cast<size_t>(i - j)];
    }
  }
  return directions;
}

constexpr std::array<Directions, kSobolDimensions> AllDirections() {
  std::array<Directions, kSobolDimensions> all{};
  for (int i = 0; i < kDigits; ++i) all[0][static_cast<size_t>(i)] = 1U << (kDigits - 1 - i);
  for (size_t i = 1; i < kSobolDimensions; ++i) all[i] = GrowDirections(kGenerators[i - 1]);
  return all;
}

constexpr std::array<Directions, kSobolDimensions> kDirections = AllDirections();

}  // namespace

uint32_t SobolDigits(uint32_t index, size_t dimension) {
  uint32_t digits = 0;
  for (uint32_t gray = index ^ (index >> 1); gray != 0; gray &= gray - 1) {
    digits ^= kDirections[dimension][static_cast<size_t>(std::countr_zero(gray))];
  }
  return digits;
}

uint32_t OwenScramble(uint32_t digits, uint64_t key) {
  uint32_t scrambled = digits;
  for (int i = 0; i < kDigits; ++i) {
    // The digits before the i-th behind a leading 1: a number of its own for each such beginning.
    const uint64_t beginning =
        (uint64_t{1} << i) | (static_cast<uint64_t>(digits) >> (kDigits - i));
    const uint64_t hash = SplitMix64(key + beginning * kSplitMixStep);
    scrambled ^= static_cast<uint32_t>(hash >> 63) << (kDigits - 1 - i);
  }
  return scrambled;
}

double ScrambledSobol(uint64_t seed, uint32_t index, size_t dimension) {
  const uint64_t key =
      SplitMix64(SplitMix64(seed + kSplitMixStep) + (dimension + 1) * kSplitMixStep);
  const uint32_t digits = OwenScramble(SobolDigits(index, dimension), key);
  return (static_cast<double>(digits) + 0.5) * 0x1.0p-32;
}

}  // namespace hpo::sampler
