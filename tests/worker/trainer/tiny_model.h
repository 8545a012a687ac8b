// The golden tiny-bert with dropout, fresh weights and the tiny trial's rows: gradients of one
// effective batch, without the loop around it.
#pragma once

#include <memory>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/trainer/tiny_trial.h"
#include "worker/trainer/models/files/weights.h"
#include "worker/trainer/optimizers/adamw.h"
#include "worker/trainer/tasks/text_classification.h"
#include "worker/trainer/training/effective_batch.h"

namespace hpo::trainer {

using Gradients = std::vector<torch::Tensor>;

class TinyModelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto options = ReadTrainingOptions(job_.task.params, job_.task.seed);
    ASSERT_TRUE(options.ok()) << options.status();
    auto folder = OpenModelFolder(job_, *options);
    ASSERT_TRUE(folder.ok()) << folder.status();
    auto data = LoadTextData(job_, *options, *folder);
    ASSERT_TRUE(data.ok()) << data.status();
    data_ = *std::move(data);
    auto model = MakeTextClassifier(folder->shape, {.num_labels = 3, .dropout = 0.1}, torch::kCPU);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    InitializeParameters(*model_, ParameterNames(*model_), 0.02, 0, 1);
    model_->train();
    task_ = std::make_unique<TextClassification>(
        model_, TaskParts{.data = data_, .max_positions = folder->shape.max_positions});
    rows_.resize(16);
    std::iota(rows_.begin(), rows_.end(), 0);
  }

  double Compute(const MemoryPlan& plan, int64_t step = 0) {
    const EffectiveBatch batch{.rows = rows_, .plan = plan, .seed = 5, .step = step};
    return ComputeGradients(*task_, batch, torch::kCPU, log_);
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
  std::shared_ptr<TextClassifier> model_;
  std::unique_ptr<Task> task_;
  text::BatchRows rows_;
};

}  // namespace hpo::trainer
