#include "worker/trainer/optimizers/schedule.h"

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

TEST(LinearSchedule, RisesThenFalls) {
  const LinearSchedule schedule(1.0, 0.2, 10);
  const double expected[] = {0.0, 0.5, 1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125, 0.0, 0.0};
  for (int64_t step = 0; step < 12; ++step) {
    EXPECT_DOUBLE_EQ(schedule.At(step), expected[step]) << step;
  }
}

TEST(LinearSchedule, WithoutWarmupStartsAtThePeak) {
  const LinearSchedule schedule(2.0, 0.0, 4);
  EXPECT_DOUBLE_EQ(schedule.At(0), 2.0);
  EXPECT_DOUBLE_EQ(schedule.At(3), 0.5);
}

TEST(LinearSchedule, AllWarmupNeverFalls) {
  const LinearSchedule schedule(1.0, 1.0, 4);
  EXPECT_DOUBLE_EQ(schedule.At(3), 0.75);
  EXPECT_DOUBLE_EQ(schedule.At(4), 0.0);
}

TEST(LinearSchedule, APartOfAStepOfWarmupIsAWholeOne) {
  const LinearSchedule schedule(1.0, 0.1, 5);
  EXPECT_DOUBLE_EQ(schedule.At(0), 0.0);
  EXPECT_DOUBLE_EQ(schedule.At(1), 1.0);
}

}  // namespace
}  // namespace hpo::trainer
