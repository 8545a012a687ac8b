#include "worker/trainer/memory/growth_watch.h"

#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

TEST(GrowthWatch, NamesTheStageInWhichLiveBytesGrow) {
  GrowthWatch watch(MiB(100));
  Bytes live = MiB(100);
  for (int step = 1; step <= 3; ++step) {
    EXPECT_FALSE(watch.After("training step", live).has_value());
    live += KiB(20);
    EXPECT_FALSE(watch.After("evaluation", live).has_value()) << step;
  }
  EXPECT_FALSE(watch.After("training step", live).has_value());
  const auto growth = watch.After("evaluation", live + KiB(20));
  EXPECT_EQ(growth, (Growth{.stage = "evaluation", .bytes = KiB(80), .times = 4}));
  EXPECT_FALSE(watch.After("evaluation", live + KiB(40)).has_value()) << "told once";
}

TEST(GrowthWatch, StillLivesWithWhatIsSmall) {
  GrowthWatch watch(Bytes{});
  for (int64_t step = 1; step <= 64; ++step) {
    EXPECT_FALSE(watch.After("training step", step * KiB(1)).has_value()) << step;
  }
  EXPECT_TRUE(watch.After("training step", KiB(65)).has_value());
}

TEST(GrowthWatch, AFirstUseIsNoGrowth) {
  GrowthWatch watch(MiB(1));
  for (int step = 0; step < 50; ++step) {
    // A library's workspace, made in the third step and kept.
    EXPECT_FALSE(watch.After("training step", step < 2 ? MiB(1) : MiB(33)).has_value());
  }
}

TEST(GrowthWatch, ACacheThatIsEmptiedIsNoGrowth) {
  GrowthWatch watch(MiB(1));
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (int step = 1; step <= 3; ++step) {
      EXPECT_FALSE(watch.After("training step", MiB(1 + step)).has_value());
    }
    EXPECT_FALSE(watch.After("evaluation", MiB(1)).has_value());
  }
}

}  // namespace
}  // namespace hpo::trainer
