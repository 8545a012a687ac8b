#include "worker/trainer/training/effective_batch.h"

#include <numeric>

#include "common/memory/memory_plan.h"
#include "gtest/gtest.h"
#include "tests/worker/trainer/golden_tensors.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/memory/oom_guard.h"
#include "worker/trainer/models/weights.h"
#include "worker/trainer/training/adamw.h"
#include "worker/trainer/training/text_task.h"

namespace hpo {
namespace {

using Gradients = std::vector<torch::Tensor>;

class EffectiveBatchTest : public testing::Test {
 protected:
  void SetUp() override {
    auto options = ReadTrainingOptions(job_.params, job_.seed);
    ASSERT_TRUE(options.ok()) << options.status();
    auto folder = OpenModelFolder(job_, *options);
    ASSERT_TRUE(folder.ok()) << folder.status();
    auto data = LoadTextData(job_, *options, *folder);
    ASSERT_TRUE(data.ok()) << data.status();
    data_ = *std::move(data);
    max_positions_ = folder->shape.max_positions;
    auto model = MakeTextClassifier(folder->shape, {.num_labels = 3, .dropout = 0.1}, torch::kCPU);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    InitializeParameters(*model_, ParameterNames(*model_), 0.02, 0, 1);
    model_->train();
    rows_.resize(16);
    std::iota(rows_.begin(), rows_.end(), 0);
  }

  double Compute(const MemoryPlan& plan, int64_t step = 0) {
    const EffectiveBatch batch{.data = data_.train,
                               .rows = rows_,
                               .plan = plan,
                               .seed = 5,
                               .step = step,
                               .max_positions = max_positions_};
    return ComputeGradients(*model_, batch, torch::kCPU, log_);
  }

  void Clear() {
    for (torch::Tensor& parameter : model_->parameters()) parameter.mutable_grad().reset();
  }

  Gradients TakeGradients() {
    Gradients gradients;
    for (torch::Tensor& parameter : model_->parameters()) {
      gradients.push_back(parameter.grad().clone());
    }
    Clear();
    return gradients;
  }

  static void ExpectBitwiseEqual(const Gradients& a, const Gradients& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << i;
  }

  TinyTrial trial_;
  TrainerJob job_ = trial_.Job();
  RecordingEvents events_;
  DeviceMemory& memory_ = *TestDevice().memory;
  StageLog log_{job_, memory_, events_};
  TextData data_;
  int64_t max_positions_ = 0;
  std::shared_ptr<TextClassifier> model_;
  BatchRows rows_;
};

TEST_F(EffectiveBatchTest, AfterAHalvingGradientsEqualAnUndisturbedRunBitForBit) {
  const MemoryPlan whole{.effective_batch = 16, .micro_batch = 16};
  const MemoryPlan half{.effective_batch = 16, .micro_batch = 8};
  const Bytes before = memory_.Read().live;
  memory_.ResetPeak();
  Compute(whole);
  const Bytes whole_needs = memory_.Read().peak - before;
  Clear();
  const double undisturbed_loss = Compute(half, 7);
  const Gradients undisturbed = TakeGradients();

  const Bytes baseline = memory_.Read().live;
  for (int eighths = 1; eighths < 8; ++eighths) {
    SCOPED_TRACE(eighths);
    // Runs out of memory at a different place of forward or backward each time.
    memory_.SetLimit(baseline + Bytes{whole_needs.count * eighths / 8});
    const BatchAttempt attempt = TryBatch(
        memory_, baseline, [&] { Compute(whole, 7); }, [&] { Clear(); });
    memory_.SetLimit(Bytes{});
    ASSERT_TRUE(attempt.fault.has_value());
    EXPECT_TRUE(attempt.clean);
    const std::optional<MemoryPlan> smaller = SmallerPlan(whole);
    ASSERT_EQ(smaller, half);
    EXPECT_EQ(Compute(*smaller, 7), undisturbed_loss);
    ExpectBitwiseEqual(TakeGradients(), undisturbed);
    EXPECT_EQ(memory_.Read().live, baseline);
  }
}

TEST_F(EffectiveBatchTest, DropoutDependsOnTheStepAndOnNothingBefore) {
  const MemoryPlan plan{.effective_batch = 16, .micro_batch = 4};
  Compute(plan, 1);
  const Gradients first = TakeGradients();
  Compute(plan, 2);
  const Gradients other = TakeGradients();
  EXPECT_FALSE(at::equal(first.front(), other.front()));
  Compute(plan, 1);
  ExpectBitwiseEqual(TakeGradients(), first);
}

TEST_F(EffectiveBatchTest, TheSplitOnlyRounds) {
  model_->eval();  // no dropout: only the order of sums differs
  const double loss = Compute({.effective_batch = 16, .micro_batch = 16});
  const Gradients whole = TakeGradients();
  for (const int64_t micro_batch : {1, 3, 5, 15}) {
    SCOPED_TRACE(micro_batch);
    EXPECT_NEAR(Compute({.effective_batch = 16, .micro_batch = micro_batch}), loss, 1e-5);
    const Gradients split = TakeGradients();
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_LE(LargestDifference(split[i], whole[i]), 1e-5) << i;
    }
  }
}

}  // namespace
}  // namespace hpo
