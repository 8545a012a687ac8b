// Refuses the k-th allocation, for every k of a piece of training: whatever was being done then,
// live bytes return to the baseline and the redone piece equals an undisturbed one, bit for bit.
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/trainer/failing_allocations.h"
#include "tests/worker/trainer/tiny_model.h"
#include "worker/text/batching/batcher.h"
#include "worker/trainer/base/random_state.h"
#include "worker/trainer/data/probe.h"
#include "worker/trainer/memory/oom_guard.h"
#include "worker/trainer/models/files/safetensors.h"
#include "worker/trainer/program/run_trial.h"
#include "worker/trainer/training/backward_barrier.h"

namespace hpo::trainer {
namespace {

constexpr MemoryPlan kHalves{.effective_batch = 8, .micro_batch = 4};
constexpr MemoryPlan kQuarters{.effective_batch = 8, .micro_batch = 2};
constexpr int64_t kStep = 7;

class FaultInjectionTest : public TinyModelTest {
 protected:
  void SetUp() override {
    TinyModelTest::SetUp();
    rows_.resize(8);
    optimizer_ = std::make_unique<AdamW>(DecayGroups(*model_, 0.01), AdamWOptions{});
  }

  // Loss and norm of one effective batch: forward, backward, clipping.
  std::pair<double, double> Batch(const MemoryPlan& plan) {
    const double loss = Compute(plan, kStep);
    return {loss, ClipGradients(optimizer_->groups(), 0.1)};
  }

  // Runs `work` with its k-th allocation refused, for every k, and `check` after each recovery.
  // Returns how many allocations `work` has.
  int64_t ForEveryAllocation(absl::FunctionRef<void()> work, absl::FunctionRef<void()> check) {
    FailingAllocations faults;
    const Bytes baseline = memory_.Read().live;
    const auto drop = [this] {
      DropFailedBackward(torch::kCPU);
      ClearGradients(optimizer_->groups());
    };
    for (int64_t k = 1;; ++k) {
      SCOPED_TRACE(k);
      faults.FailAt(k);
      const BatchAttempt attempt = TryBatch(memory_, baseline, work, drop);
      faults.FailAt(0);
      if (!attempt.fault.has_value()) {
        drop();
        return k - 1;
      }
      EXPECT_TRUE(attempt.clean);
      EXPECT_EQ(memory_.Read().live, baseline);
      check();
      drop();
      if (HasFailure()) return k;
    }
  }

  std::unique_ptr<AdamW> optimizer_;
};

// The whole of a step but its update, in the two parts of a probe: gradients of the first are there
// when the second runs.
TEST_F(FaultInjectionTest, AnEffectiveBatchIsRedoneSmallerBitForBit) {
  const auto undisturbed = Batch(kQuarters);
  const Gradients gradients = TakeGradients();
  at::Generator generator = at::globalContext().defaultGenerator(torch::kCPU);
  generator.set_current_seed(99);
  const auto next_random = [&generator] {
    return generator.clone().get<at::CPUGeneratorImpl>()->random64();
  };
  const uint64_t next = next_random();
  const int64_t allocations = ForEveryAllocation(
      [this] {
        const RandomStateKeeper keeper(torch::kCPU);
        Batch(kHalves);
      },
      [&] {
        EXPECT_EQ(next_random(), next);
        for (const torch::Tensor& parameter : model_->parameters()) {
          EXPECT_FALSE(parameter.grad().defined());
        }
        const RandomStateKeeper keeper(torch::kCPU);
        EXPECT_EQ(Batch(kQuarters), undisturbed);
        ExpectBitwiseEqual(TakeGradients(), gradients);
      });
  EXPECT_GT(allocations, 200);
  RecordProperty("allocations", static_cast<int>(allocations));
}

TEST_F(FaultInjectionTest, TheOptimizersUpdateAllocatesNothing) {
  Batch(kHalves);
  FailingAllocations faults;
  faults.FailAt(1);
  EXPECT_NO_THROW(optimizer_->Step(1e-3));
  EXPECT_NO_THROW(ClearGradients(optimizer_->groups()));
  EXPECT_EQ(faults.count(), 0);
}

TEST_F(FaultInjectionTest, AnEvaluationIsRedoneWithEqualMetrics) {
  const auto evaluate = [this](int64_t rows) {
    return task_->Evaluate(text::EvaluationBatches(data_.validation, rows));
  };
  const Metrics undisturbed = evaluate(6);
  const int64_t allocations = ForEveryAllocation([&] { evaluate(12); },
                                                 [&] {
                                                   EXPECT_TRUE(model_->is_training());
                                                   EXPECT_EQ(evaluate(6), undisturbed);
                                                 });
  EXPECT_GT(allocations, 50);
}

// ---- Whole trials --------------------------------------------------------------------------

// One step, from loading the model to saving the weights.
TEST(FaultInjectionInATrial, EveryPlaceEndsCleanWithTheWeightsOfAnUndisturbedTrial) {
  const TinyTrial trial;
  TrialDevice& device = TestDevice();
  RecordingEvents events;
  TrainerJob job = trial.Job();
  job.task.trainer.train = trial.Write("eight.jsonl", TinyRows(8, 5));
  job.task.limit = GiB(1);
  std::map<int64_t, std::string> undisturbed;  // by micro-batch
  for (const int64_t micro_batch : {8, 4}) {
    TrainerJob small = job;
    small.task.plan.micro_batch = micro_batch;
    RunTrial(small, device, events, events);
    undisturbed[micro_batch] = BestWeights(trial);
  }
  FailingAllocations faults;
  int64_t k = 0;
  int64_t refused = 1;
  // A prime stride meets places of every kind; the tests above visit every one.
  for (k = 1; refused > 0; k += 17) {
    SCOPED_TRACE(k);
    events.messages.clear();
    faults.FailAt(k);
    const OutcomeMessage message = RunTrial(job, device, events, events);
    refused = message.memory.num_ooms;
    faults.FailAt(0);
    EXPECT_TRUE(message.clean);
    EXPECT_EQ(device.memory->Read().live, device.baseline);
    if (const auto* oom = std::get_if<OutOfMemory>(&*message.outcome)) {
      EXPECT_TRUE(oom->phase == "model" || oom->phase == "optimizer states") << oom->phase;
      continue;
    }
    ASSERT_TRUE(std::holds_alternative<Completed>(*message.outcome))
        << OutcomeToJson(*message.outcome);
    EXPECT_EQ(BestWeights(trial), undisturbed.at(message.final_plan.micro_batch));
  }
  EXPECT_GT(k, 500);
}

}  // namespace
}  // namespace hpo::trainer
