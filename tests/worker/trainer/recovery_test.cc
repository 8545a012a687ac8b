// A trial under every kind of shortage, through RunTrial: what it does, and what it says.
#include <algorithm>
#include <functional>
#include <new>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/scripted_memory.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/memory/counting_allocator.h"
#include "worker/trainer/program/run_trial.h"

namespace hpo::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// More than a tiny trial ever needs, so that an injected refusal is not one of the limit's.
constexpr Bytes kAmple = GiB(1);

// Records, and lets a test act when a stage is reached or the loop asks for stops.
class HookedEvents final : public EventSink, public StopSource {
 public:
  std::function<void(const MemoryMessage&)> on_memory = [](const MemoryMessage&) {};
  std::function<void()> on_poll = [] {};
  RecordingEvents record;

  void Send(const UpMessage& message) override {
    record.Send(message);
    if (const auto* memory = std::get_if<MemoryMessage>(&message)) on_memory(*memory);
  }
  std::optional<StopRequest> Poll() override {
    on_poll();
    return std::nullopt;
  }
};

// Asks `fault` before each allocation, from the moment it is armed.
class Faults final : public AllocationWatcher {
 public:
  ~Faults() override { CountingAllocator::Install().SetWatcher(nullptr); }
  void Arm() { CountingAllocator::Install().SetWatcher(this); }
  // Returns whether to refuse, or throws.
  std::function<bool(Bytes)> fault = [](Bytes) { return false; };

  bool Admit(Bytes size) override { return !fault(size); }
  void Allocated(const void*, Bytes) override {}
  void Freed(const void*, Bytes) override {}
};

class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest() {
    events_.on_memory = [this](const MemoryMessage& message) {
      if (message.stage == arm_at_) faults_.Arm();
    };
  }

  OutcomeMessage Run(const TrainerJob& job) {
    TrialDevice device{
        .device = torch::kCPU, .profile = TestDevice().profile, .baseline = TestDevice().baseline};
    auto memory = std::make_unique<ScriptedMemory>(*TestDevice().memory);
    if (prepare_) prepare_(*memory);
    memory_ = memory.get();
    device.memory = std::move(memory);
    events_.record.messages.clear();
    OutcomeMessage outcome = RunTrial(job, device, events_, events_);
    CountingAllocator::Install().SetWatcher(nullptr);
    reliefs_ = memory_->reliefs;
    releases_ = memory_->releases;
    return outcome;
  }

  // Refuses, or throws by, the next `times` allocations after the probe began.
  void FailNext(int times, std::function<void()> raise = {}) {
    faults_.fault = [times, raise = std::move(raise)](Bytes) mutable {
      if (times <= 0) return false;
      --times;
      if (raise) raise();
      return true;
    };
  }

  std::vector<MemoryMessage> At(const std::string& stage) const {
    std::vector<MemoryMessage> found;
    for (const MemoryMessage& message : events_.record.All<MemoryMessage>()) {
      if (message.stage == stage) found.push_back(message);
    }
    return found;
  }

  TrainerJob AmpleJob() const {
    TrainerJob job = trial_.Job();
    job.task.limit = kAmple;
    return job;
  }

  static OutOfMemory Oom(const OutcomeMessage& message) {
    const auto* oom = std::get_if<OutOfMemory>(&message.outcome.value());
    if (oom == nullptr) ADD_FAILURE() << OutcomeToJson(*message.outcome);
    return oom != nullptr ? *oom : OutOfMemory{};
  }

  static void ExpectCompleted(const OutcomeMessage& message) {
    EXPECT_TRUE(std::holds_alternative<Completed>(message.outcome.value()))
        << OutcomeToJson(*message.outcome);
    EXPECT_TRUE(message.clean);
  }

  TinyTrial trial_;
  HookedEvents events_;
  Faults faults_;
  std::string arm_at_ = "Training Start";
  std::function<void(ScriptedMemory&)> prepare_;
  ScriptedMemory* memory_ = nullptr;
  std::vector<Relief> reliefs_;
  int releases_ = 0;
};

// ---- The probe -----------------------------------------------------------------------------

TEST_F(RecoveryTest, TheProbeIsComparedWithThePrediction) {
  ExpectCompleted(Run(trial_.Job()));
  EXPECT_THAT(events_.record.Stages(), ElementsAre("Trial Start", "Training Start", "Probe",
                                                   "Training End", "Trial Success"));
  const MemoryMessage probe = At("Probe").at(0);
  EXPECT_EQ(probe.step, 0);
  EXPECT_FALSE(probe.plan.has_value());
  EXPECT_LE(probe.peak, probe.predicted);
  EXPECT_GE(probe.peak, probe.predicted - KiB(72) - Bytes{probe.predicted.count / 50});
}

TEST_F(RecoveryTest, NoTraceOfTheProbeIsLeft) {
  TrainerJob job = trial_.Job();  // with dropout
  job.task.trainer.epochs = 2;
  const OutcomeMessage probed = Run(job);
  const std::string weights = BestWeights(trial_);
  ASSERT_EQ(At("Probe").size(), 1u);
  const Bytes used = probed.memory.live_peak;
  job.task.memory.policy = MemoryPolicy::kOff;
  const OutcomeMessage unprobed = Run(job);
  ASSERT_TRUE(At("Probe").empty());
  EXPECT_EQ(probed.outcome, unprobed.outcome);
  EXPECT_EQ(BestWeights(trial_), weights);
  // No batch needed more than the probe's.
  EXPECT_LE(unprobed.memory.live_peak, used);
}

TEST_F(RecoveryTest, WhatDoesNotFitIsFoundOutBeforeTheFirstStep) {
  TrainerJob job = trial_.Job();
  job.task.plan.micro_batch = 4;
  const Bytes four_need = Run(job).memory.live_peak;
  job.task.plan.micro_batch = 8;
  const Bytes eight_need = Run(job).memory.live_peak;
  job.task.limit = Bytes{(four_need.count + eight_need.count) / 2};
  const OutcomeMessage message = Run(job);
  ExpectCompleted(message);
  EXPECT_THAT(events_.record.Stages(),
              ElementsAre("Trial Start", "Training Start", "OOM Error", "replan", "Probe",
                          "Training End", "Trial Success"));
  const MemoryMessage oom = At("OOM Error").at(0);
  EXPECT_EQ(oom.step, 0);
  EXPECT_GT(oom.needed, job.task.limit);
  EXPECT_GT(oom.predicted, job.task.limit);
  // By the estimate, not by halves.
  EXPECT_GE(message.final_plan.micro_batch, 4);
  EXPECT_LT(message.final_plan.micro_batch, 8);
  EXPECT_EQ(message.memory.num_ooms, 1);
}

TEST_F(RecoveryTest, AProbeAboveItsPredictionMeansASmallerPlan) {
  Run(trial_.Job());
  const Bytes predicted = At("Probe").at(0).predicted;
  TrainerJob job = trial_.Job();
  job.task.limit = predicted + KiB(100);
  // A card on which everything needs 200 KiB more than anybody knows, above what the limit is for.
  prepare_ = [](ScriptedMemory& memory) {
    memory.on_read = [](MemoryUse& use) { use.peak += KiB(200) + KiB(100); };
  };
  const OutcomeMessage message = Run(job);
  ExpectCompleted(message);
  EXPECT_LT(message.final_plan.micro_batch, 8);
  EXPECT_EQ(message.final_plan.effective_batch, 8);
  EXPECT_EQ(message.memory.num_ooms, 0);
  EXPECT_EQ(message.memory.num_replans, 1);
  EXPECT_THAT(events_.record.Stages(), ElementsAre("Trial Start", "Training Start", "Probe",
                                                   "replan", "Training End", "Trial Success"));
  job.task.memory.policy = MemoryPolicy::kStrict;
  const OutcomeMessage strict = Run(job);
  ExpectCompleted(strict);
  EXPECT_EQ(strict.final_plan.micro_batch, 8);
}

// ---- The kinds -----------------------------------------------------------------------------

TEST_F(RecoveryTest, ADirtyDeviceEndsTheAttemptWhileNothingIsLost) {
  FailNext(1);
  prepare_ = [](ScriptedMemory& memory) {
    memory.on_refused = [](RefusedAllocation& refused) { refused.device_free = Bytes{}; };
  };
  const OutcomeMessage message = Run(AmpleJob());
  EXPECT_EQ(Oom(message).kind, OomKind::kDirtyDevice);
  EXPECT_TRUE(message.clean);
  EXPECT_EQ(message.memory.num_replans, 0);
}

TEST_F(RecoveryTest, ADirtyDeviceCostsNoStepsThatAreDone) {
  FailNext(1);
  arm_at_ = "never";
  prepare_ = [](ScriptedMemory& memory) {
    memory.on_refused = [](RefusedAllocation& refused) { refused.device_free = Bytes{}; };
  };
  int polls = 0;
  events_.on_poll = [&] {
    if (++polls == 3) faults_.Arm();
  };
  const OutcomeMessage message = Run(AmpleJob());
  ExpectCompleted(message);
  EXPECT_EQ(message.final_plan.micro_batch, 4);
  EXPECT_EQ(At("replan").at(0).step, 2);
}

TEST_F(RecoveryTest, FragmentationIsRedoneOnceInGrowingSegmentsThenSmaller) {
  prepare_ = [](ScriptedMemory& memory) {
    memory.on_read = [](MemoryUse& use) { use.reserved += MiB(64); };
  };
  FailNext(1);
  const OutcomeMessage once = Run(AmpleJob());
  ExpectCompleted(once);
  EXPECT_EQ(once.final_plan.micro_batch, 8);
  EXPECT_EQ(once.memory.num_ooms, 1);
  // What stays reserved, here by the script, is given back with the workspaces when the trial ends.
  EXPECT_THAT(reliefs_, ElementsAre(Relief::kExpandableSegments, Relief::kNewWorkspaces));
  FailNext(2);
  const OutcomeMessage twice = Run(AmpleJob());
  ExpectCompleted(twice);
  EXPECT_EQ(twice.final_plan.micro_batch, 4);
  EXPECT_EQ(twice.memory.num_ooms, 2);
}

TEST_F(RecoveryTest, HostMemoryIsTriedAgainBeforeAnythingShrinks) {
  const OutcomeMessage undisturbed = Run(AmpleJob());
  const std::string weights = BestWeights(trial_);
  FailNext(1, [] { throw std::bad_alloc(); });
  const OutcomeMessage once = Run(AmpleJob());
  ExpectCompleted(once);
  EXPECT_EQ(once.outcome, undisturbed.outcome);
  EXPECT_EQ(once.final_plan.micro_batch, 8);
  EXPECT_EQ(BestWeights(trial_), weights);
  FailNext(1000000, [] { throw std::bad_alloc(); });
  const OutcomeMessage always = Run(AmpleJob());
  EXPECT_EQ(Oom(always).kind, OomKind::kHost);
  EXPECT_EQ(Oom(always).plan.micro_batch, 1);
  EXPECT_EQ(always.memory.num_ooms, 5) << "twice with 8 rows, then 4, 2 and 1";
}

TEST_F(RecoveryTest, WorkspacesAreRenewedOnlyWhereNothingSmallerIsLeft) {
  TrainerJob job = trial_.Job();
  job.task.memory.policy = MemoryPolicy::kStrict;
  job.task.limit = Run(job).memory.live_peak - KiB(64);
  prepare_ = [](ScriptedMemory& memory) { memory.can_relieve = true; };
  const OutcomeMessage message = Run(job);
  EXPECT_EQ(Oom(message).kind, OomKind::kConfiguration);
  EXPECT_TRUE(message.clean);
  EXPECT_EQ(message.memory.num_ooms, 2);
  EXPECT_THAT(reliefs_, ElementsAre(Relief::kNewWorkspaces));
}

TEST_F(RecoveryTest, ALibrarysErrorThatASmallerBatchCuresIsMemory) {
  Bytes largest;  // with four rows
  faults_.fault = [&largest](Bytes size) {
    largest = std::max(largest, size);
    return false;
  };
  TrainerJob four_rows = AmpleJob();
  four_rows.task.plan.micro_batch = 4;
  ExpectCompleted(Run(four_rows));
  // A library that refuses more than that.
  faults_.fault = [largest](Bytes size) -> bool {
    if (size <= largest) return false;
    throw c10::Error({"f", "MHA.cpp", 1}, "mha_graph.execute(handle, pack).is_good() failed");
  };
  const OutcomeMessage message = Run(AmpleJob());
  ExpectCompleted(message);
  EXPECT_EQ(message.final_plan.micro_batch, 4);
  EXPECT_EQ(message.memory.num_ooms, 1);
}

TEST_F(RecoveryTest, ALibrarysErrorThatStaysIsAFailure) {
  faults_.fault = [](Bytes) -> bool {
    throw c10::Error({"f", "MHA.cpp", 1}, "mha_graph.execute(handle, pack).is_good() failed");
  };
  const OutcomeMessage message = Run(AmpleJob());
  const auto* failed = std::get_if<Failed>(&message.outcome.value());
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->failure_class, FailureClass::kInternal);
  EXPECT_THAT(failed->message, HasSubstr("nothing smaller helps"));
  EXPECT_EQ(message.final_plan.micro_batch, 1);
}

TEST_F(RecoveryTest, AStickyErrorEndsTheProcess) {
  faults_.fault = [](Bytes) -> bool {
    throw c10::Error({"f", "x.cpp", 1}, "CUDA error: misaligned address");
  };
  const OutcomeMessage message = Run(AmpleJob());
  const auto* failed = std::get_if<Failed>(&message.outcome.value());
  ASSERT_NE(failed, nullptr);
  EXPECT_EQ(failed->failure_class, FailureClass::kDeviceLost);
  EXPECT_FALSE(message.clean);
}

// ---- Thrashing and growth ------------------------------------------------------------------

TEST_F(RecoveryTest, ThrashingShrinksBeforeItEndsInAnError) {
  int64_t retries = 0;
  prepare_ = [&retries](ScriptedMemory& memory) {
    memory.on_read = [&retries](MemoryUse& use) { use.alloc_retries = retries; };
  };
  events_.on_poll = [&retries] { ++retries; };  // in every step
  const OutcomeMessage message = Run(trial_.Job());
  ExpectCompleted(message);
  EXPECT_EQ(message.memory.num_ooms, 0);
  EXPECT_EQ(message.final_plan, (MemoryPlan{.effective_batch = 8, .micro_batch = 1}));
  std::vector<int64_t> steps;
  for (const MemoryMessage& replan : At("replan")) steps.push_back(replan.step);
  EXPECT_THAT(steps, ElementsAre(2, 4, 6));
  TrainerJob strict = trial_.Job();
  strict.task.memory.policy = MemoryPolicy::kStrict;
  EXPECT_EQ(Run(strict).final_plan.micro_batch, 8);
}

// Gradients live while the second of two parts runs weigh more than the activations of one row.
TEST_F(RecoveryTest, ThrashingDoesNotShrinkToWhatNeedsMore) {
  int64_t retries = 0;
  prepare_ = [&retries](ScriptedMemory& memory) {
    memory.on_read = [&retries](MemoryUse& use) { use.alloc_retries = retries; };
  };
  events_.on_poll = [&retries] { ++retries; };
  TrainerJob job = trial_.Job();
  job.task.params["train.batch_size"] = int64_t{2};
  job.task.params["tok.max_length"] = int64_t{4};
  job.task.plan = {.effective_batch = 2, .micro_batch = 2};
  const OutcomeMessage message = Run(job);
  ExpectCompleted(message);
  EXPECT_EQ(message.final_plan.micro_batch, 2);
  EXPECT_EQ(message.memory.num_replans, 0);
}

TEST_F(RecoveryTest, MemoryThatDoesNotComeBackIsToldWithItsStage) {
  std::vector<torch::Tensor> leaked;
  events_.on_poll = [&leaked] { leaked.push_back(at::empty({8192})); };  // 32 KiB in every step
  const OutcomeMessage message = Run(trial_.Job());
  const std::vector<MemoryMessage> growths = At("Growth");
  ASSERT_EQ(growths.size(), 2u);  // while it grew, and what was left after the trial
  EXPECT_EQ(growths[0].step, 4);
  EXPECT_EQ(growths[0].growth_stage, "training step");
  EXPECT_EQ(growths[1].growth, 6 * KiB(32));
  EXPECT_FALSE(message.clean);
  EXPECT_EQ(message.memory.growth_stage, "training step");
  EXPECT_EQ(message.memory.growth, 6 * KiB(32));
}

TEST_F(RecoveryTest, ADriftOfTheBaselineIsTold) {
  torch::Tensor kept;
  events_.on_poll = [&kept] {
    if (!kept.defined()) kept = at::empty({100});  // once: no growth, yet not given back
  };
  const OutcomeMessage message = Run(trial_.Job());
  ASSERT_EQ(At("Growth").size(), 1u);
  EXPECT_EQ(At("Growth")[0].growth_stage, "trial");
  EXPECT_FALSE(message.clean);
  EXPECT_EQ(message.memory.growth_stage, "trial");
  EXPECT_EQ(message.memory.growth, Bytes{448});
}

TEST_F(RecoveryTest, TheCacheGoesBackAsOftenAsToldTo) {
  TrainerJob job = AmpleJob();
  ASSERT_TRUE(Run(job).outcome.has_value());
  const int without = releases_;
  const int64_t steps = events_.record.All<MeasurementMessage>().back().measurement.step;
  ASSERT_GE(steps, 2);
  job.task.params["memory.clear_cache_every"] = int64_t{2};
  ASSERT_TRUE(Run(job).outcome.has_value());
  EXPECT_EQ(releases_ - without, steps / 2);
}

}  // namespace
}  // namespace hpo::trainer
