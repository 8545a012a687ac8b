// Random requests to an allocator, much as a run makes them: sizes that come again, on several
// streams, what was taken last mostly given back first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "common/base/bytes.h"

namespace hpo::emulator {

struct AllocationDraw {
  enum class Kind { kAllocate, kFree, kEmptyCache, kSetLimit };
  Kind kind = Kind::kAllocate;
  Bytes size;          // kAllocate
  uint8_t stream = 0;  // kAllocate
  size_t which = 0;    // kFree: of what is held, in the order in which it was taken
  double share = 1.0;  // kSetLimit: of the limit that the trace began with
};

// The same seed, and as many held at each call, give the same draws.
class AllocationDraws {
 public:
  static constexpr uint8_t kNumStreams = 4;

  // Most requests are below `large`; none is above twice it, but that of whole MiB up to 40.
  AllocationDraws(uint64_t seed, Bytes large);

  AllocationDraw Next(size_t num_held);

 private:
  bool OneIn(uint64_t times) { return Below(times) == 0; }
  uint64_t Below(uint64_t end) { return random_() % end; }
  // Evenly over the logarithms, up to `most`.
  Bytes AnySize(double most);
  Bytes DrawSize();

  std::mt19937_64 random_;
  const double large_;
  std::vector<Bytes> usual_;  // sizes that come again
  uint8_t num_streams_ = 1;
  uint64_t target_ = 100;  // about as many are held
};

}  // namespace hpo::emulator
