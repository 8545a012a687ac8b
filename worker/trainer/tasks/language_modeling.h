// Task "language-modeling": every token of a text is predicted from those before it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "worker/trainer/models/language_model.h"
#include "worker/trainer/tasks/task.h"

namespace hpo::trainer {

// The loss is the mean over tokens, those of the whole effective batch, of the cross entropy; a
// row's first token and padding are not predicted. Logits exist of `loss_rows` tokens at a time
// (training/chunked_loss.h). Metrics: "loss", that of the validation data, and "perplexity", e to
// its power.
class LanguageModeling final : public Task {
 public:
  // loss_rows >= 1.
  LanguageModeling(std::shared_ptr<LanguageModel> model, const TaskParts& parts, int64_t loss_rows)
      : model_(std::move(model)), parts_(parts), loss_rows_(loss_rows) {}

  torch::nn::Module& module() override { return *model_; }
  void SetExecution(const memory::Execution& execution) override;
  double WeightOf(std::span<const int64_t> rows) const override;
  std::vector<text::BatchRows> PiecesOf(std::span<const int64_t> rows) const override {
    return {{rows.begin(), rows.end()}};
  }
  text::TokenBatch TokensOf(std::span<const int64_t> rows) const override;
  DeviceBatch ToTensors(const text::TokenBatch& tokens) const override;
  torch::Tensor SumOfLosses(const DeviceBatch& batch) override;
  Metrics Evaluate(std::span<const text::BatchRows> batches) override;

 private:
  text::TokenBatch TokensOf(const text::EncodedDataset& data, std::span<const int64_t> rows) const;

  const std::shared_ptr<LanguageModel> model_;
  const TaskParts parts_;
  const int64_t loss_rows_;
  Precision precision_ = Precision::kFloat32;
};

}  // namespace hpo::trainer
