// Task "text-regression": one number a row, or several; of one text or a pair.
#pragma once

#include "worker/trainer/tasks/text_task.h"

namespace hpo::trainer {

// The loss is the mean over rows of the squared error's mean over the numbers of a row. Metrics:
// see RegressionErrors; "loss" is that of the validation data.
class TextRegression final : public TextTask {
 public:
  // `model`: an output for each number.
  using TextTask::TextTask;

  torch::Tensor SumOfLosses(const DeviceBatch& batch) override;
  Metrics Evaluate(std::span<const text::BatchRows> batches) override;
};

}  // namespace hpo::trainer
