#include "worker/trainer/tasks/language_modeling.h"

#include <cmath>

#include "worker/trainer/base/autocast.h"
#include "worker/trainer/tasks/chunked_loss.h"
#include "worker/trainer/tasks/evaluation_mode.h"

namespace hpo::trainer {
namespace {

// What each place is to say: the token after it; nothing where none comes. [rows * length].
std::vector<int64_t> NextTokens(const text::TokenBatch& batch) {
  std::vector<int64_t> labels(batch.ids.size(), kIgnoredLabel);
  for (size_t i = 0; i + 1 < labels.size(); ++i) {
    const bool ends_row = (i + 1) % static_cast<size_t>(batch.length) == 0;
    if (!ends_row && batch.mask[i + 1] != 0) labels[i] = batch.ids[i + 1];
  }
  return labels;
}

double PredictedTokens(const text::EncodedDataset& data, std::span<const int64_t> rows) {
  int64_t tokens = 0;
  for (const int64_t row : rows) tokens += data.Length(row) - 1;
  return static_cast<double>(tokens);
}

}  // namespace

void LanguageModeling::SetExecution(const memory::Execution& execution) {
  model_->SetCheckpointing(execution.checkpoint_every);
  precision_ = execution.precision;
}

double LanguageModeling::WeightOf(std::span<const int64_t> rows) const {
  return PredictedTokens(parts_.data.train, rows);
}

text::TokenBatch LanguageModeling::TokensOf(std::span<const int64_t> rows) const {
  return TokensOf(parts_.data.train, rows);
}

text::TokenBatch LanguageModeling::TokensOf(const text::EncodedDataset& data,
                                            std::span<const int64_t> rows) const {
  text::TokenBatch padded = text::PadBatch(data, rows, parts_.max_positions);
  padded.labels = NextTokens(padded);
  return padded;
}

DeviceBatch LanguageModeling::ToTensors(const text::TokenBatch& tokens) const {
  return ToDevice(tokens, /*num_labels=*/0, parts_.device);
}

torch::Tensor LanguageModeling::SumOfLosses(const DeviceBatch& batch) {
  const AutocastScope autocast({parts_.device, ScalarTypeOf(precision_)});
  const torch::Tensor hidden = model_->forward(batch.input);
  // A tied head may be stored in 16 bits; autocast sees to that itself.
  const auto logits_of = [this](const torch::Tensor& features) {
    const torch::Tensor weight = model_->HeadWeight();
    return at::linear(features,
                      precision_ == Precision::kFloat32 ? weight.to(torch::kFloat32) : weight);
  };
  return ChunkedCrossEntropy(hidden.view({-1, hidden.size(2)}), batch.labels, logits_of,
                             loss_rows_);
}

Metrics LanguageModeling::Evaluate(std::span<const text::BatchRows> batches) {
  const EvaluationMode mode(*model_);
  const text::EncodedDataset& data = parts_.data.validation;
  double sum_loss = 0.0;
  double tokens = 0.0;
  for (const text::BatchRows& rows : batches) {
    sum_loss += SumOfLosses(ToTensors(TokensOf(data, rows))).item<double>();
    tokens += PredictedTokens(data, rows);
  }
  const double loss = sum_loss / tokens;
  return {{"loss", loss}, {"perplexity", std::exp(loss)}};
}

}  // namespace hpo::trainer
