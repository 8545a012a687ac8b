#include "common/base/random.h"

#include <cstddef>

namespace hpo {
namespace {

constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

Rng::Rng(uint64_t seed, uint64_t stream)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      counter_{0, 0, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)} {}

void Rng::Refill() {
  std::array<uint32_t, 4> c = counter_;
  std::array<uint32_t, 2> k = key_;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(kMultiplier0) * c[0];
    const uint64_t product1 = static_cast<uint64_t>(kMultiplier1) * c[2];
    c = {static_cast<uint32_t>(product1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(product1),
         static_cast<uint32_t>(product0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(product0)};
    k = {k[0] + kWeyl0, k[1] + kWeyl1};
  }
  block_ = c;
  used_ = 0;
  if (++counter_[0] == 0) ++counter_[1];
}

uint32_t Rng::NextU32() {
  if (used_ == 4) Refill();
  return block_[static_cast<size_t>(used_++)];
}

uint64_t Rng::NextU64() {
  const uint64_t high = NextU32();
  return (high << 32) | NextU32();
}

double Rng::Uniform() { return static_cast<double>(NextU64() >> 11) * 0x1.0p-53; }

uint64_t Rng::Below(uint64_t n) {
  // Rejects the short last interval, so that every value is equally likely.
  const uint64_t limit = UINT64_MAX - UINT64_MAX % n;
  uint64_t draw = NextU64();
  while (draw >= limit) draw = NextU64();
  return draw % n;
}

}  // namespace hpo
