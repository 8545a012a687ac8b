#include "worker/trainer/checkpoints/loop_state.h"

#include <limits>

#include "common/base/json_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo::trainer {
namespace {

using testing::HasSubstr;

LoopState SomeLoop() {
  LoopState state;
  state.step = 150;
  state.epoch = 2;
  state.batches_done = 31;
  state.measured_step = 148;
  state.loss_sum = 0.1 + 0.2;  // no short decimal
  state.loss_steps = 2;
  state.best_kept = false;
  state.best = {{"macro_f1", 2.0 / 3.0}, {"loss", std::numeric_limits<double>::denorm_min()}};
  state.measurements = {{.step = 75, .epoch = 1.0, .metrics = {{"macro_f1", 0.5}}},
                        {.step = 148, .epoch = 1.9733333333333334, .metrics = *state.best}};
  state.plan = {.effective_batch = 64, .micro_batch = 7};
  state.evaluation_rows = 14;
  state.limit = GiB(8);
  state.loss_scale = {.scale = 0.5, .good_steps = 17, .skipped = 3};
  return state;
}

TEST(LoopState, EveryBitComesBackFromText) {
  const LoopState state = SomeLoop();
  const auto again = LoopStateFromJson(ParseJson(DumpJson(LoopStateToJson(state))).value());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, state);
}

TEST(LoopState, WithoutAMeasurementThereIsNoBest) {
  LoopState state = SomeLoop();
  state.best.reset();
  state.measurements.clear();
  EXPECT_EQ(LoopStateFromJson(LoopStateToJson(state)).value(), state);
}

TEST(LoopState, WhatIsMissingOrImpossibleIsNamed) {
  const nlohmann::json good = LoopStateToJson(SomeLoop());
  for (const auto& [key, value] : good.items()) {
    if (key == "best") continue;
    SCOPED_TRACE(key);
    nlohmann::json bad = good;
    bad.erase(key);
    // One that was written before it was remembered had kept its best.
    if (key == "best_kept") {
      EXPECT_TRUE(LoopStateFromJson(bad).value().best_kept);
    } else {
      EXPECT_THAT(LoopStateFromJson(bad).status().message(), HasSubstr(key));
    }
    bad[key] = "three";
    EXPECT_THAT(LoopStateFromJson(bad).status().message(), HasSubstr(key));
  }
  for (const char* key : {"step", "epoch", "batches_done", "evaluation_rows"}) {
    nlohmann::json bad = good;
    bad[key] = -1;
    EXPECT_FALSE(LoopStateFromJson(bad).ok()) << key;
  }
}

}  // namespace
}  // namespace hpo::trainer
