#include "worker/trainer/tasks/text_classification.h"

#include <utility>

#include "worker/trainer/scores/metrics.h"
#include "worker/trainer/tasks/evaluation_mode.h"

namespace hpo::trainer {
namespace {

void CountSingleLabel(const torch::Tensor& logits, const text::TokenBatch& batch,
                      ClassificationCounts& counts) {
  const torch::Tensor predicted = logits.argmax(/*dim=*/1).to(torch::kCPU);
  const auto values = predicted.accessor<int64_t, 1>();
  for (int64_t row = 0; row < batch.rows; ++row) {
    counts.AddRow(values[row], batch.labels[static_cast<size_t>(row)]);
  }
}

void CountMultiLabel(const torch::Tensor& logits, const text::TokenBatch& batch,
                     ClassificationCounts& counts) {
  const torch::Tensor positive = (logits > 0).to(torch::kCPU);
  const auto num_labels = static_cast<size_t>(logits.size(1));
  const auto* const said = reinterpret_cast<const uint8_t*>(positive.const_data_ptr<bool>());
  std::vector<uint8_t> actual(num_labels);
  for (size_t row = 0; row < static_cast<size_t>(batch.rows); ++row) {
    for (size_t label = 0; label < num_labels; ++label) {
      actual[label] = batch.label_matrix[row * num_labels + label] != 0.0f ? 1 : 0;
    }
    counts.AddRow({said + row * num_labels, num_labels}, actual);
  }
}

}  // namespace

TextClassification::TextClassification(std::shared_ptr<TextClassifier> model,
                                       const TaskParts& parts, const LabelLoss& loss)
    : TextTask(std::move(model), parts),
      weights_(loss.weights),
      loss_(ToDevice(loss, parts.device)) {}

double TextClassification::WeightOf(std::span<const int64_t> rows) const {
  const text::EncodedDataset& data = parts_.data.train;
  if (weights_.empty() || data.multi_label) return TextTask::WeightOf(rows);
  double sum = 0.0;
  for (const int64_t row : rows) {
    sum += static_cast<double>(weights_[static_cast<size_t>(data.Labels(row).front())]);
  }
  return sum;
}

text::TokenBatch TextClassification::TokensOf(std::span<const int64_t> rows) const {
  text::TokenBatch tokens = TextTask::TokensOf(rows);
  const auto smoothing = static_cast<float>(loss_.smoothing);
  for (float& label : tokens.label_matrix) label = label * (1.0f - smoothing) + smoothing / 2.0f;
  return tokens;
}

torch::Tensor TextClassification::SumOfLosses(const DeviceBatch& batch) {
  return SumOfRowLosses(model_->forward(batch.input), batch.labels, loss_);
}

Metrics TextClassification::Evaluate(std::span<const text::BatchRows> batches) {
  const EvaluationMode mode(*model_);
  const text::EncodedDataset& data = parts_.data.validation;
  ClassificationCounts counts(data.num_labels, data.multi_label);
  double sum_loss = 0.0;
  for (const text::BatchRows& rows : batches) {
    const text::TokenBatch tokens = parts_.BatchOf(data, rows);
    const DeviceBatch batch = ToDevice(tokens, data.num_labels, parts_.device);
    const torch::Tensor logits = model_->forward(batch.input);
    sum_loss += SumOfRowLosses(logits, batch.labels).item<double>();
    if (data.multi_label) {
      CountMultiLabel(logits, tokens, counts);
    } else {
      CountSingleLabel(logits, tokens, counts);
    }
  }
  Metrics metrics = counts.Summarize();
  metrics["loss"] = sum_loss / static_cast<double>(counts.num_rows());
  return metrics;
}

}  // namespace hpo::trainer
