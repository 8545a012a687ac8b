#include "common/base/clock.h"

#include "gtest/gtest.h"

namespace hpo {
namespace {

// What is stored in microseconds must read back as what memory holds.
TEST(SystemClock, TellsWholeMicroseconds) {
  for (int i = 0; i < 10; ++i) {
    const absl::Time now = SystemClock().Now();
    EXPECT_EQ(now, absl::FromUnixMicros(absl::ToUnixMicros(now)));
  }
}

}  // namespace
}  // namespace hpo
