// Task "text-regression": one number a row, or several; of one text or a pair.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/tasks/task.h"

namespace hpo {

// The loss is the mean over rows of the squared error's mean over the numbers of a row. Metrics:
// see RegressionErrors; "loss" is that of the validation data.
class TextRegression final : public Task {
 public:
  // `model`: an output for each number.
  TextRegression(std::shared_ptr<TextClassifier> model, const TaskParts& parts)
      : model_(std::move(model)), parts_(parts) {}

  torch::nn::Module& module() override { return *model_; }
  void SetExecution(const Execution& execution) override { model_->SetExecution(execution); }
  double WeightOf(std::span<const int64_t> rows) const override;
  std::vector<BatchRows> PiecesOf(std::span<const int64_t> rows) const override {
    return {{rows.begin(), rows.end()}};
  }
  TokenBatch TokensOf(std::span<const int64_t> rows) const override;
  DeviceBatch ToTensors(const TokenBatch& tokens) const override;
  torch::Tensor SumOfLosses(const DeviceBatch& batch) override;
  Metrics Evaluate(std::span<const BatchRows> batches) override;

 private:
  const std::shared_ptr<TextClassifier> model_;
  const TaskParts parts_;
};

}  // namespace hpo
