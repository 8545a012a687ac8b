#include "worker/trainer/optimizers/loss_scale.h"

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

TEST(LossScale, HalvesWhereGradientsAreNotFinite) {
  LossScale scale{.scale = LossScale::kFirst};
  EXPECT_FALSE(scale.Update(false));
  EXPECT_FALSE(scale.Update(false));
  EXPECT_EQ(scale.scale, 16384.0);
  EXPECT_EQ(scale.skipped, 2);
  EXPECT_TRUE(scale.Update(true));
  EXPECT_EQ(scale.scale, 16384.0);
  EXPECT_EQ(scale.skipped, 2);
}

TEST(LossScale, DoublesAfterManyGoodStepsInARow) {
  LossScale scale{.scale = 8.0};
  for (int64_t step = 0; step < LossScale::kGrowthInterval - 1; ++step) scale.Update(true);
  EXPECT_EQ(scale.scale, 8.0);
  scale.Update(false);  // the row begins again
  for (int64_t step = 0; step < LossScale::kGrowthInterval - 1; ++step) scale.Update(true);
  EXPECT_EQ(scale.scale, 4.0);
  scale.Update(true);
  EXPECT_EQ(scale.scale, 8.0);
  EXPECT_EQ(scale.good_steps, 0);
}

}  // namespace
}  // namespace hpo::trainer
