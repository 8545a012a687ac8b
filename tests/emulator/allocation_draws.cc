#include "tests/emulator/allocation_draws.h"

#include <algorithm>
#include <cmath>

namespace hpo::emulator {
namespace {

constexpr size_t kUsualSizes = 24;
constexpr uint64_t kMostHeld = 300;
// One in so many.
constexpr uint64_t kOtherTarget = 400;
constexpr uint64_t kEmptyCache = 600;
constexpr uint64_t kOtherLimit = 900;
constexpr uint64_t kWholeMebibytes = 10;
constexpr uint64_t kMostMebibytes = 40;

}  // namespace

AllocationDraws::AllocationDraws(uint64_t seed, Bytes large)
    : random_(seed), large_(static_cast<double>(large.count)) {
  for (size_t i = 0; i < kUsualSizes; ++i) usual_.push_back(AnySize(2.0 * large_));
  if (OneIn(2)) num_streams_ = static_cast<uint8_t>(2 + Below(kNumStreams - 1));
  target_ = 2 + Below(kMostHeld);
}

Bytes AllocationDraws::AnySize(double most) {
  const double share = std::uniform_real_distribution<double>(0.0, 1.0)(random_);
  return Bytes{std::max<int64_t>(1, static_cast<int64_t>(std::exp2(share * std::log2(most))))};
}

Bytes AllocationDraws::DrawSize() {
  if (OneIn(kWholeMebibytes)) return MiB(static_cast<int64_t>(1 + Below(kMostMebibytes)));
  return OneIn(4) ? AnySize(large_) : usual_[Below(usual_.size())];
}

AllocationDraw AllocationDraws::Next(size_t num_held) {
  if (OneIn(kOtherTarget)) target_ = 2 + Below(kMostHeld);
  AllocationDraw draw;
  if (OneIn(kEmptyCache)) {
    draw.kind = AllocationDraw::Kind::kEmptyCache;
  } else if (OneIn(kOtherLimit)) {
    draw.kind = AllocationDraw::Kind::kSetLimit;
    draw.share = std::uniform_real_distribution<double>(0.4, 1.0)(random_);
  } else if (num_held == 0 || Below(2 * target_) > num_held) {
    draw.size = DrawSize();
    draw.stream = static_cast<uint8_t>(Below(num_streams_));
  } else {
    draw.kind = AllocationDraw::Kind::kFree;
    draw.which = OneIn(4) ? Below(num_held) : num_held - 1 - Below(std::min<size_t>(num_held, 6));
  }
  return draw;
}

}  // namespace hpo::emulator
