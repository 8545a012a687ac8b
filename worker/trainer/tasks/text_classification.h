// Task "text-classification": a label a row, or several; of one text or a pair.
#pragma once

#include <memory>
#include <vector>

#include "worker/trainer/scores/class_weights.h"
#include "worker/trainer/tasks/text_task.h"

namespace hpo::trainer {

// The loss is the mean over rows of the cross entropy, where labels have weights the weighted mean,
// as CrossEntropyLoss(weight=, label_smoothing=) of torch; or with several labels a row of the
// binary one's mean over labels, as BCEWithLogitsLoss(pos_weight=), smoothed labels lying so much
// nearer to 1/2. A label is predicted when its logit is the largest, or with several
// labels a row when it is positive. Metrics: see ClassificationCounts.
class TextClassification final : public TextTask {
 public:
  TextClassification(std::shared_ptr<TextClassifier> model, const TaskParts& parts,
                     const LabelLoss& loss = {});

  double WeightOf(std::span<const int64_t> rows) const override;
  text::TokenBatch TokensOf(std::span<const int64_t> rows) const override;
  torch::Tensor SumOfLosses(const DeviceBatch& batch) override;
  Metrics Evaluate(std::span<const text::BatchRows> batches) override;

 private:
  const std::vector<float> weights_;
  const ClassLossOptions loss_;
};

}  // namespace hpo::trainer
