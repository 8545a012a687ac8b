// Task "text-classification": a label a row, or several; of one text or a pair.
#pragma once

#include <memory>

#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/tasks/task.h"

namespace hpo {

// The loss is the mean over rows of the cross entropy, or with several labels a row of the binary
// one's mean over labels. A label is predicted when its logit is the largest, or with several
// labels a row when it is positive. Metrics: see ClassificationCounts.
class TextClassification final : public Task {
 public:
  TextClassification(std::shared_ptr<TextClassifier> model, const TaskParts& parts)
      : model_(std::move(model)), parts_(parts) {}

  torch::nn::Module& module() override { return *model_; }
  void SetExecution(const Execution& execution) override { model_->SetExecution(execution); }
  double WeightOf(std::span<const int64_t> rows) const override;
  DeviceBatch BatchOf(std::span<const int64_t> rows) const override;
  torch::Tensor SumOfLosses(const DeviceBatch& batch) override;
  Metrics Evaluate(std::span<const BatchRows> batches) override;
  ModelRole Role() const override;

 private:
  const std::shared_ptr<TextClassifier> model_;
  const TaskParts parts_;
};

}  // namespace hpo
