#include "worker/trainer/tasks/multi_query.h"

#include <cmath>

#include "worker/trainer/tasks/evaluation_mode.h"
#include "worker/trainer/training/metrics.h"

namespace hpo {
namespace {

constexpr int64_t kNumbers = 2;  // valence and arousal

// What the model says of the queries that are answered: those before the padding.
struct Answers {
  torch::Tensor classes;  // [answered, classes]
  torch::Tensor numbers;  // [answered, 2]
};

Answers Answered(const torch::Tensor& outputs, int64_t answered) {
  const torch::Tensor real = outputs.narrow(0, 0, answered);
  const int64_t classes = outputs.size(1) - kNumbers;
  return {.classes = real.narrow(1, 0, classes).contiguous(),
          .numbers = real.narrow(1, classes, kNumbers)};
}

torch::Tensor SumOfQueryLosses(const Answers& answers, const DeviceBatch& batch) {
  const torch::Tensor of_classes = at::cross_entropy_loss(answers.classes, batch.labels,
                                                          /*weight=*/{}, at::Reduction::Sum);
  const torch::Tensor of_numbers = at::mse_loss(answers.numbers, batch.numbers, at::Reduction::Sum);
  return of_classes + of_numbers / static_cast<double>(kNumbers);
}

// Squared errors of valence and arousal, added up.
class NumberErrors {
 public:
  void Add(const torch::Tensor& said, const torch::Tensor& is) {
    const torch::Tensor squared = (said - is).square().to(torch::kFloat64).sum(0).to(torch::kCPU);
    valence_ += squared[0].item<double>();
    arousal_ += squared[1].item<double>();
  }

  void Summarize(double aspects, Metrics& metrics) const {
    metrics["valence_rmse"] = std::sqrt(valence_ / aspects);
    metrics["arousal_rmse"] = std::sqrt(arousal_ / aspects);
    metrics["va_rmse"] = std::sqrt((valence_ + arousal_) / aspects);
  }

 private:
  double valence_ = 0.0;
  double arousal_ = 0.0;
};

}  // namespace

double MultiQuery::WeightOf(std::span<const int64_t> rows) const {
  int64_t aspects = 0;
  for (const int64_t row : rows) aspects += parts_.data.train_queries->NumQueries(row);
  return static_cast<double>(aspects);
}

std::vector<BatchRows> MultiQuery::PiecesOf(std::span<const int64_t> rows) const {
  return QueryPieces(*parts_.data.train_queries, parts_.data.query_layout, rows);
}

TokenBatch MultiQuery::TokensOf(std::span<const int64_t> rows) const {
  return PadQueries(*parts_.data.train_queries, rows, parts_.max_positions);
}

DeviceBatch MultiQuery::ToTensors(const TokenBatch& tokens) const {
  TokenBatch tokens_and_classes = tokens;
  tokens_and_classes.label_matrix.clear();
  DeviceBatch batch = ToDevice(tokens_and_classes, /*num_labels=*/0, parts_.device);
  batch.numbers = ToDevice(tokens.label_matrix, parts_.device).view({-1, kNumbers});
  return batch;
}

torch::Tensor MultiQuery::SumOfLosses(const DeviceBatch& batch) {
  const torch::Tensor outputs = model_->forward(batch.input);
  return SumOfQueryLosses(Answered(outputs, batch.labels.size(0)), batch);
}

Metrics MultiQuery::Evaluate(std::span<const BatchRows> batches) {
  const EvaluationMode mode(*model_);
  const QuerySet& set = *parts_.data.validation_queries;
  ClassificationCounts counts(static_cast<int64_t>(parts_.data.labels.size()) - kNumbers,
                              /*multi_label=*/false);
  NumberErrors errors;
  double sum_loss = 0.0;
  for (const BatchRows& texts : batches) {
    for (const BatchRows& piece : QueryPieces(set, parts_.data.query_layout, texts)) {
      const DeviceBatch batch = ToTensors(PadQueries(set, piece, parts_.max_positions));
      const Answers answers = Answered(model_->forward(batch.input), batch.labels.size(0));
      sum_loss += SumOfQueryLosses(answers, batch).item<double>();
      errors.Add(answers.numbers, batch.numbers);
      const torch::Tensor said = answers.classes.argmax(/*dim=*/1).to(torch::kCPU);
      const torch::Tensor is = batch.labels.to(torch::kCPU);
      for (int64_t i = 0; i < said.size(0); ++i) {
        counts.AddRow(said.const_data_ptr<int64_t>()[i], is.const_data_ptr<int64_t>()[i]);
      }
    }
  }
  const auto aspects = static_cast<double>(counts.num_rows());
  const Metrics of_classes = counts.Summarize();
  Metrics metrics = {{"accuracy", of_classes.at("accuracy")},
                     {"loss", sum_loss / aspects},
                     {"macro_f1", of_classes.at("macro_f1")}};
  errors.Summarize(aspects, metrics);
  return metrics;
}

}  // namespace hpo
