#include "worker/trainer/tasks/text_regression.h"

#include "worker/trainer/scores/regression_errors.h"
#include "worker/trainer/tasks/evaluation_mode.h"

namespace hpo::trainer {
namespace {

// Summed over rows. predicted, actual: [rows, numbers].
torch::Tensor SumOfSquaredErrors(const torch::Tensor& predicted, const torch::Tensor& actual) {
  return at::mse_loss(predicted, actual, at::Reduction::Sum) / static_cast<double>(actual.size(1));
}

}  // namespace

torch::Tensor TextRegression::SumOfLosses(const DeviceBatch& batch) {
  return SumOfSquaredErrors(model_->forward(batch.input), batch.labels);
}

Metrics TextRegression::Evaluate(std::span<const text::BatchRows> batches) {
  const EvaluationMode mode(*model_);
  const text::EncodedDataset& data = parts_.data.validation;
  const auto columns = static_cast<size_t>(data.num_labels);
  RegressionErrors errors(columns);
  for (const text::BatchRows& rows : batches) {
    const text::TokenBatch tokens = parts_.BatchOf(data, rows);
    const DeviceBatch batch = ToDevice(tokens, data.num_labels, parts_.device);
    const torch::Tensor predicted = model_->forward(batch.input).to(torch::kCPU);
    const std::span<const float> said(predicted.const_data_ptr<float>(),
                                      static_cast<size_t>(predicted.numel()));
    for (size_t row = 0; row < rows.size(); ++row) {
      errors.AddRow(said.subspan(row * columns, columns),
                    std::span(tokens.label_matrix).subspan(row * columns, columns));
    }
  }
  return errors.Summarize();
}

}  // namespace hpo::trainer
