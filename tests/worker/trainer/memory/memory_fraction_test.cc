#include "worker/trainer/memory/memory_fraction.h"

#include <cstdint>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

// As torch computes it from the share.
Bytes AllowedBy(double fraction, Bytes total) {
  return Bytes{static_cast<int64_t>(
      static_cast<size_t>(fraction * static_cast<double>(static_cast<size_t>(total.count))))};
}

TEST(MemoryFraction, GivesEveryLimitBackToTheByte) {
  // As drivers report them: T4, RTX 3060, L4, A100 40 and 80 GB, H100, H200; and odd ones.
  const int64_t totals[] = {15828320256, 12622168064,  23686152192,      42405855232, 85094170624,
                            85029158912, 150109880320, int64_t{1} << 40, 100,         1};
  Rng rng(20, 0);
  for (const int64_t total : totals) {
    SCOPED_TRACE(total);
    for (int i = 0; i < 10000; ++i) {
      // Some at either end, most between, whole MiB among them.
      int64_t limit = i < 100 ? 1 + i : i < 200 ? total - (i - 100) : 0;
      if (i >= 200) limit = static_cast<int64_t>(rng.Uniform() * static_cast<double>(total));
      if (i >= 5000) limit &= ~((int64_t{1} << 20) - 1);
      if (limit < 1 || limit > total) continue;
      const double fraction = MemoryFraction(Bytes{limit}, Bytes{total});
      ASSERT_GT(fraction, 0.0);
      ASSERT_LE(fraction, 1.0);
      ASSERT_EQ(AllowedBy(fraction, Bytes{total}), Bytes{limit});
    }
  }
}

TEST(MemoryFraction, IsOneWithoutALimitOrAboveTheCard) {
  for (const Bytes limit : {Bytes{}, GiB(24), GiB(25)}) {
    EXPECT_EQ(MemoryFraction(limit, GiB(24)), 1.0);
  }
}

}  // namespace
}  // namespace hpo::trainer
