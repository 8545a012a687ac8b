// What the tasks share that say something of a row: of one text or a pair.
#pragma once

#include <memory>
#include <vector>

#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/tasks/task.h"

namespace hpo::trainer {

// As they are: rows that weigh alike, all of a part at a time, with their labels.
class TextTask : public Task {
 public:
  TextTask(std::shared_ptr<TextClassifier> model, const TaskParts& parts);

  torch::nn::Module& module() final { return *model_; }
  void SetExecution(const memory::Execution& execution) final { model_->SetExecution(execution); }
  double WeightOf(std::span<const int64_t> rows) const override;
  std::vector<text::BatchRows> PiecesOf(std::span<const int64_t> rows) const final;
  text::TokenBatch TokensOf(std::span<const int64_t> rows) const override;
  DeviceBatch ToTensors(const text::TokenBatch& tokens) const final;

 protected:
  const std::shared_ptr<TextClassifier> model_;
  const TaskParts parts_;
};

}  // namespace hpo::trainer
