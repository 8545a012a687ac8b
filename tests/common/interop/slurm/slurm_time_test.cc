#include "common/interop/slurm/slurm_time.h"

#include <gtest/gtest.h>

namespace hpo {
namespace {

TEST(SlurmTime, HasDaysWhereTheyArePrinted) {
  EXPECT_EQ(*ParseSlurmTime("0:07"), absl::Seconds(7));
  EXPECT_EQ(*ParseSlurmTime("1:02:03"), absl::Hours(1) + absl::Seconds(123));
  EXPECT_EQ(*ParseSlurmTime("2-01:00:00"), absl::Hours(49));
  for (const char* const wrong :
       {"", "7", "UNLIMITED", "a:b", "1-2", "x-1:02:03", "1:-2", "1:2:3:4"}) {
    EXPECT_FALSE(ParseSlurmTime(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace hpo
