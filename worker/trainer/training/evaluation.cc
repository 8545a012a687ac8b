#include "worker/trainer/training/evaluation.h"

#include <vector>

#include "worker/trainer/training/batch_tensors.h"
#include "worker/trainer/training/metrics.h"

namespace hpo {
namespace {

// Back to training mode, also when an exception passes.
class EvaluationMode {
 public:
  explicit EvaluationMode(TextClassifier& model) : model_(model) { model_.eval(); }
  ~EvaluationMode() { model_.train(); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  TextClassifier& model_;
  const torch::NoGradGuard no_grad_;
};

void CountSingleLabel(const torch::Tensor& logits, const PaddedBatch& batch,
                      ClassificationCounts& counts) {
  const torch::Tensor predicted = logits.argmax(/*dim=*/1).to(torch::kCPU);
  const auto values = predicted.accessor<int64_t, 1>();
  for (int64_t row = 0; row < batch.rows; ++row) {
    counts.AddRow(values[row], batch.labels[static_cast<size_t>(row)]);
  }
}

void CountMultiLabel(const torch::Tensor& logits, const PaddedBatch& batch,
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

Metrics Evaluate(TextClassifier& model, const EncodedDataset& data,
                 std::span<const BatchRows> batches, int64_t max_positions, torch::Device device) {
  const EvaluationMode mode(model);
  ClassificationCounts counts(data.num_labels, data.multi_label);
  double sum_loss = 0.0;
  for (const BatchRows& rows : batches) {
    const PaddedBatch padded = PadBatch(data, rows, max_positions);
    const DeviceBatch batch = ToDevice(padded, data.num_labels, device);
    const torch::Tensor logits = model.forward(batch.input);
    sum_loss += SumOfRowLosses(logits, batch.labels).item<double>();
    if (data.multi_label) {
      CountMultiLabel(logits, padded, counts);
    } else {
      CountSingleLabel(logits, padded, counts);
    }
  }
  Metrics metrics = counts.Summarize();
  metrics["loss"] = sum_loss / static_cast<double>(counts.num_rows());
  return metrics;
}

}  // namespace hpo
