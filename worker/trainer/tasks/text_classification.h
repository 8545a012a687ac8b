// Task "text-classification": a label a row, or several; of one text or a pair.
#pragma once

#include <memory>
#include <vector>

#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/tasks/task.h"
#include "worker/trainer/training/class_weights.h"

namespace hpo {

// The loss is the mean over rows of the cross entropy, where labels have weights the weighted mean,
// as CrossEntropyLoss(weight=, label_smoothing=) of torch; or with several labels a row of the
// binary one's mean over labels, as BCEWithLogitsLoss(pos_weight=), smoothed labels lying so much
// nearer to 1/2. A label is predicted when its logit is the largest, or with several
// labels a row when it is positive. Metrics: see ClassificationCounts.
class TextClassification final : public Task {
 public:
  TextClassification(std::shared_ptr<TextClassifier> model, const TaskParts& parts,
                     const LabelLoss& loss = {});

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
  const std::vector<float> weights_;
  const ClassLossOptions loss_;
};

}  // namespace hpo
