#include "worker/trainer/training/train_course.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hpo::trainer {
namespace {

using testing::ElementsAre;
using Do = TrainAction;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const TrainPlace kMidEpoch;
const TrainPlace kMeasured{.is_unmeasured = false};
const TrainPlace kEpochDone{.batches_left = false};
const TrainPlace kEpochDoneAndMeasured{.batches_left = false, .is_unmeasured = false};
const TrainPlace kAllDone{.epochs_left = false};
const TrainPlace kMeasureDue{.measure_due = true};
const TrainPlace kSaveDue{.save_due = true};
const TrainPlace kBothDue{.measure_due = true, .save_due = true};
const TrainPlace kSaveDueAtEpochsEnd{.batches_left = false, .save_due = true};
const TrainPlace kNowhereToSave{.may_save = false};

StopRequest StopFor(const char* reason, bool checkpoint = false) {
  return {.reason = reason, .checkpoint = checkpoint};
}

TrainState Doing(TrainAction action, const char* stop_reason = "") {
  return {.action = action, .stop_reason = stop_reason};
}

TrainState EndedBy(TrainEnd end) { return {.action = Do::kEnd, .end = end}; }

const TrainState kCompletes = EndedBy(TrainEnd::kCompleted);
const TrainState kIsPruned = EndedBy(TrainEnd::kPruned);
const TrainState kIsCancelled = EndedBy(TrainEnd::kCancelled);
const TrainState kStaysUnfinished = EndedBy(TrainEnd::kUnfinished);

struct CourseRow {
  const char* what;
  TrainState state;
  TrainPlace place;
  TrainEvent event;
  TrainState expected;
};

const CourseRow kCourseRows[] = {
    {"a trial begins", {}, kMidEpoch, ActionDone{}, Doing(Do::kLookForStop)},
    {"resumed after an epoch's last batch", {}, kEpochDone, ActionDone{}, Doing(Do::kMeasureEpoch)},
    {"resumed after it was measured",
     {},
     kEpochDoneAndMeasured,
     ActionDone{},
     Doing(Do::kTurnEpoch)},
    {"resumed with no epoch left", {}, kAllDone, ActionDone{}, kCompletes},
    {"nothing stops it", Doing(Do::kLookForStop), kMidEpoch, ActionDone{}, Doing(Do::kTrain)},

    {"a step", Doing(Do::kTrain), kMidEpoch, ActionDone{}, Doing(Do::kLookForStop)},
    {"a step, to be measured", Doing(Do::kTrain), kMeasureDue, ActionDone{}, Doing(Do::kMeasure)},
    {"a step, to be saved", Doing(Do::kTrain), kSaveDue, ActionDone{}, Doing(Do::kSave)},
    {"measured before it is saved", Doing(Do::kTrain), kBothDue, ActionDone{}, Doing(Do::kMeasure)},
    {"an epoch's last step", Doing(Do::kTrain), kEpochDone, ActionDone{}, Doing(Do::kMeasureEpoch)},
    {"saved before it is measured", Doing(Do::kTrain), kSaveDueAtEpochsEnd, ActionDone{},
     Doing(Do::kSave)},

    {"measured", Doing(Do::kMeasure), kMeasured, ActionDone{}, Doing(Do::kLookForStop)},
    {"measured, to be saved", Doing(Do::kMeasure), kBothDue, ActionDone{}, Doing(Do::kSave)},
    {"measured with an epoch's last step", Doing(Do::kMeasure), kEpochDoneAndMeasured, ActionDone{},
     Doing(Do::kTurnEpoch)},
    {"measured, nothing better", Doing(Do::kMeasure), kBothDue, NothingBetter{}, kCompletes},

    {"saved, or not", Doing(Do::kSave), kSaveDue, ActionDone{}, Doing(Do::kLookForStop)},
    {"saved at an epoch's end", Doing(Do::kSave), kSaveDueAtEpochsEnd, ActionDone{},
     Doing(Do::kMeasureEpoch)},

    {"an epoch is measured", Doing(Do::kMeasureEpoch), kSaveDueAtEpochsEnd, ActionDone{},
     Doing(Do::kTurnEpoch)},
    {"an epoch brought nothing better", Doing(Do::kMeasureEpoch), kEpochDone, NothingBetter{},
     kCompletes},
    {"the next epoch", Doing(Do::kTurnEpoch), kMeasured, ActionDone{}, Doing(Do::kLookForStop)},
    {"the last epoch is over", Doing(Do::kTurnEpoch), kAllDone, ActionDone{}, kCompletes},

    {"pruned", Doing(Do::kLookForStop), kMidEpoch, StopFor("pruned"), kIsPruned},
    {"pruned: nobody goes on", Doing(Do::kLookForStop), kMidEpoch, StopFor("pruned", true),
     kIsPruned},
    {"out of time", Doing(Do::kLookForStop), kMidEpoch, StopFor("time limit"),
     Doing(Do::kMeasureForStop, "time limit")},
    {"out of time, just measured", Doing(Do::kLookForStop), kMeasured, StopFor("time limit"),
     kIsPruned},
    {"out of time before the first step", Doing(Do::kLookForStop), kMeasured,
     StopFor("time limit", true), kIsPruned},
    {"measured for the last time", Doing(Do::kMeasureForStop, "time limit"), kMeasured,
     ActionDone{}, kIsPruned},
    {"the last measurement brought nothing better", Doing(Do::kMeasureForStop, "time limit"),
     kMeasured, NothingBetter{}, kCompletes},
    {"cancelled", Doing(Do::kLookForStop), kMidEpoch, StopFor("cancelled"), kIsCancelled},
    {"cancelled with a checkpoint", Doing(Do::kLookForStop), kMidEpoch, StopFor("cancelled", true),
     Doing(Do::kSaveForStop, "cancelled")},
    {"and saved", Doing(Do::kSaveForStop, "cancelled"), kMidEpoch, ActionDone{}, kIsCancelled},
    {"drained", Doing(Do::kLookForStop), kMidEpoch, StopFor("drain", true),
     Doing(Do::kSaveForStop, "drain")},
    {"preempted before the first step: the save writes nothing", Doing(Do::kLookForStop), kMeasured,
     StopFor("preempted", true), Doing(Do::kSaveForStop, "preempted")},
    {"saved for later", Doing(Do::kSaveForStop, "preempted"), kMidEpoch, ActionDone{},
     kStaysUnfinished},
    {"drained, nowhere to save", Doing(Do::kLookForStop), kNowhereToSave, StopFor("drain", true),
     kStaysUnfinished},
    {"lease lost", Doing(Do::kLookForStop), kMidEpoch, StopFor("lease lost"), kStaysUnfinished},
    {"a reason of tomorrow", Doing(Do::kLookForStop), kMidEpoch, StopFor("eclipse"),
     kStaysUnfinished},
    {"over is over", kIsPruned, kMidEpoch, ActionDone{}, kIsPruned},
};

TEST(NextState, FollowsTheTable) {
  for (const CourseRow& row : kCourseRows) {
    SCOPED_TRACE(row.what);
    const TrainState next = NextState(row.state, row.place, row.event);
    EXPECT_EQ(next.action, row.expected.action);
    EXPECT_EQ(next.stop_reason, row.expected.stop_reason);
    EXPECT_EQ(next.end, row.expected.end);
  }
}

TEST(NextState, AnActionThatFailsEndsTheTraining) {
  for (const TrainAction action :
       {Do::kProbe, Do::kLookForStop, Do::kTrain, Do::kMeasure, Do::kSave, Do::kMeasureEpoch,
        Do::kTurnEpoch, Do::kMeasureForStop, Do::kSaveForStop}) {
    EXPECT_EQ(NextState(Doing(action, "drain"), kBothDue, ActionFailed{}),
              EndedBy(TrainEnd::kFailed));
  }
}

// Two epochs of two batches, a measurement every three steps, a checkpoint after the second.
TEST(NextState, LeadsThroughATraining) {
  std::vector<TrainAction> actions;
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t batches = 0;
  int64_t measured = 0;
  for (TrainState now; now.action != Do::kEnd && actions.size() < 40;) {
    actions.push_back(now.action);
    if (now.action == Do::kTrain) {
      ++step;
      ++batches;
    }
    if (now.action == Do::kMeasure || now.action == Do::kMeasureEpoch) measured = step;
    if (now.action == Do::kTurnEpoch) {
      ++epoch;
      batches = 0;
    }
    const TrainPlace place{.epochs_left = epoch < 2,
                           .batches_left = batches<2, .is_unmeasured = step> measured,
                           .measure_due = step % 3 == 0,
                           .save_due = step == 2 && now.action == Do::kTrain};
    now = NextState(now, place, ActionDone{});
  }
  EXPECT_THAT(actions, ElementsAre(Do::kProbe, Do::kLookForStop, Do::kTrain, Do::kLookForStop,
                                   Do::kTrain, Do::kSave, Do::kMeasureEpoch, Do::kTurnEpoch,
                                   Do::kLookForStop, Do::kTrain, Do::kMeasure, Do::kLookForStop,
                                   Do::kTrain, Do::kMeasureEpoch, Do::kTurnEpoch));
}

TEST(OutcomeOf, TellsWhatWasReached) {
  LoopState reached{.step = 7};
  using Outcome = std::optional<TrialOutcome>;
  EXPECT_EQ(OutcomeOf(TrainEnd::kCompleted, reached, {}), Outcome(Completed{}));
  reached.best = Metrics{{"f1", 0.5}};
  const Outcome failure = Failed{.message = "no"};
  EXPECT_EQ(OutcomeOf(TrainEnd::kCompleted, reached, {}), Outcome(Completed{{{"f1", 0.5}}, {}}));
  EXPECT_EQ(OutcomeOf(TrainEnd::kPruned, reached, {}),
            Outcome(StoppedByPruner{.step = 7, .metrics = {{"f1", 0.5}}}));
  EXPECT_EQ(OutcomeOf(TrainEnd::kCancelled, reached, {}),
            Outcome(Cancelled{.reason = "cancelled on request"}));
  EXPECT_EQ(OutcomeOf(TrainEnd::kUnfinished, reached, {}), std::nullopt);
  EXPECT_EQ(OutcomeOf(TrainEnd::kFailed, reached, failure), failure);
}

TEST(JudgeStep, OnlyFloat16SkipsAndOnlyWhileASmallerScaleMayHelp) {
  const LossScale first{.scale = LossScale::kFirst};
  const LossScale smallest{.scale = LossScale::kSmallest};
  const struct {
    const char* what;
    double loss, norm;
    std::optional<LossScale> scale;
    StepVerdict expected;
    double scale_after = 0.0;
  } rows[] = {
      {"a step", 1.0, 2.0, {}, StepVerdict::kTake},
      {"a loss that is not finite", kNan, 2.0, {}, StepVerdict::kDiverged},
      {"a norm that is not finite", 1.0, kInfinity, {}, StepVerdict::kDiverged},
      {"float16", 1.0, 2.0, first, StepVerdict::kTake, LossScale::kFirst},
      {"float16 out of range", 1.0, kInfinity, first, StepVerdict::kSkip, LossScale::kFirst / 2},
      {"float16, the loss too", kNan, kNan, first, StepVerdict::kDiverged, LossScale::kFirst},
      {"float16 at its end", 1.0, kNan, smallest, StepVerdict::kDiverged, LossScale::kSmallest / 2},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    std::optional<LossScale> scale = row.scale;
    EXPECT_EQ(JudgeStep(row.loss, row.norm, scale ? &*scale : nullptr), row.expected);
    if (scale) {
      EXPECT_EQ(scale->scale, row.scale_after);
    }
  }
}

TEST(Improves, ByTheDirectionAndNotByATie) {
  const Objective most{.metric = "f1", .direction = Direction::kMaximize};
  const Objective least{.metric = "loss", .direction = Direction::kMinimize};
  const Metrics best{{"f1", 0.5}, {"loss", 0.5}};
  EXPECT_TRUE(Improves(best, std::nullopt, most));
  EXPECT_FALSE(Improves(best, best, most));
  EXPECT_FALSE(Improves(best, best, least));
  EXPECT_TRUE(Improves({{"f1", 0.6}, {"loss", 0.6}}, best, most));
  EXPECT_FALSE(Improves({{"f1", 0.6}, {"loss", 0.6}}, best, least));
  EXPECT_TRUE(Improves({{"f1", 0.4}, {"loss", 0.4}}, best, least));
  EXPECT_FALSE(Improves({{"f1", kNan}}, best, most));
}

TEST(IsStale, AfterMoreThanSoManyMeasurementsInARow) {
  const std::vector<Measurement> all = {{.metrics = {{"f1", 0.1}}},
                                        {.metrics = {{"f1", 0.5}}},
                                        {.metrics = {{"f1", 0.3}}},
                                        {.metrics = {{"f1", 0.4}}}};
  const Metrics best{{"f1", 0.5}};
  EXPECT_FALSE(IsStale(all, best, 0));
  EXPECT_TRUE(IsStale(all, best, 2));
  EXPECT_FALSE(IsStale(all, best, 3));
}

TEST(KeepsPlan, WhereThereIsNoMoreRoomThanBefore) {
  const MemoryPlan four{.effective_batch = 8, .micro_batch = 4};
  const MemoryPlan eight{.effective_batch = 8, .micro_batch = 8};
  const MemoryPlan other{.effective_batch = 16, .micro_batch = 4};
  const struct {
    const char* what;
    LoopState reached, now;
    bool keeps;
  } rows[] = {
      {"the same limit", {.plan = four, .limit = MiB(2)}, {.plan = eight, .limit = MiB(2)}, true},
      {"none, as before", {.plan = four}, {.plan = eight}, true},
      {"less", {.plan = four, .limit = MiB(2)}, {.plan = eight, .limit = MiB(1)}, true},
      {"a limit, now", {.plan = four}, {.plan = eight, .limit = MiB(1)}, true},
      {"more", {.plan = four, .limit = MiB(1)}, {.plan = eight, .limit = MiB(2)}, false},
      {"no limit any more", {.plan = four, .limit = MiB(1)}, {.plan = eight}, false},
      {"a smaller plan to begin with", {.plan = eight}, {.plan = four}, false},
      {"another effective batch", {.plan = other}, {.plan = eight}, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    EXPECT_EQ(KeepsPlan(row.reached, row.now), row.keeps);
  }
}

}  // namespace
}  // namespace hpo::trainer
