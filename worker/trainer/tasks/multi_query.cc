#include "worker/trainer/tasks/multi_query.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/base/status.h"
#include "common/models/query_answers.h"
#include "worker/trainer/scores/metrics.h"
#include "worker/trainer/scores/quadruplet_scores.h"
#include "worker/trainer/scores/span_scores.h"
#include "worker/trainer/tasks/evaluation_mode.h"

namespace hpo::trainer {
namespace {

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

void AddSpans(const text::QuerySet& set, const text::BatchRows& piece, const QueryOutputs& outputs,
              SpanScores& scores) {
  for (size_t row = 0; row < piece.size(); ++row) {
    if (piece[row] < 0) continue;
    scores.AddRow(set.spans.queries[static_cast<size_t>(piece[row])], outputs.SpansOf(row));
  }
}

void AddClasses(const std::vector<int64_t>& labels, const QueryOutputs& outputs,
                ClassificationCounts& counts) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != text::kNoClass) counts.AddRow(outputs.classes[i], labels[i]);
  }
}

template <typename T>
std::vector<T> OnHost(const torch::Tensor& tensor) {
  const torch::Tensor host = tensor.to(torch::kCPU).contiguous();
  const T* const values = host.const_data_ptr<T>();
  return {values, values + host.numel()};
}

}  // namespace

// What the model says of the queries that are answered: those before the padding.
struct MultiQuery::Answers {
  torch::Tensor classes;  // [answered, classes]
  torch::Tensor numbers;  // [answered, 2]; 0 where they are not asked for
  torch::Tensor spans;    // [rows, length, 2]; undefined without spans

  QueryOutputs Outputs() const {
    QueryOutputs outputs;
    outputs.classes = OnHost<int64_t>(classes.argmax(/*dim=*/1));
    if (!spans.defined()) return outputs;
    outputs.length = spans.size(1);
    outputs.spans = OnHost<float>(spans);
    outputs.numbers = OnHost<float>(numbers);
    return outputs;
  }
};

MultiQuery::Answers MultiQuery::AnswersTo(const DeviceBatch& batch) {
  const TextClassifier::Outputs outputs = model_->ForwardWithSpans(batch.input);
  const torch::Tensor real = outputs.logits.narrow(0, 0, batch.labels.size(0));
  const int64_t classes = real.size(1) - kAspectNumbers;
  Answers answers{.classes = real.narrow(1, 0, classes).contiguous(),
                  .numbers = real.narrow(1, classes, kAspectNumbers),
                  .spans = outputs.spans};
  if (batch.asks_class.defined()) answers.numbers = answers.numbers * batch.asks_class;
  return answers;
}

torch::Tensor MultiQuery::SumOfQueryLosses(const Answers& answers, const DeviceBatch& batch,
                                           const ClassLossOptions& loss) const {
  const torch::Tensor of_classes = SumOfRowLosses(answers.classes, batch.labels, loss);
  const torch::Tensor of_numbers = at::mse_loss(answers.numbers, batch.numbers, at::Reduction::Sum);
  const torch::Tensor of_aspects = of_classes + of_numbers / static_cast<double>(kAspectNumbers);
  if (!answers.spans.defined()) return of_aspects;
  return of_aspects + at::binary_cross_entropy_with_logits(answers.spans, batch.span_targets,
                                                           batch.span_weights, /*pos_weight=*/{},
                                                           at::Reduction::Sum);
}

double MultiQuery::WeightOf(std::span<const int64_t> rows) const {
  int64_t queries = 0;
  for (const int64_t row : rows) queries += parts_.data.train_queries->NumQueries(row);
  return static_cast<double>(queries);
}

std::vector<text::BatchRows> MultiQuery::PiecesOf(std::span<const int64_t> rows) const {
  return text::QueryPieces(*parts_.data.train_queries, parts_.data.query_layout, rows);
}

text::TokenBatch MultiQuery::TokensOf(std::span<const int64_t> rows) const {
  return text::PadQueries(*parts_.data.train_queries, rows, parts_.max_positions);
}

DeviceBatch MultiQuery::ToTensors(const text::TokenBatch& tokens) const {
  text::TokenBatch tokens_and_classes = tokens;
  tokens_and_classes.label_matrix.clear();
  DeviceBatch batch = ToDevice(tokens_and_classes, /*num_labels=*/0, parts_.device);
  batch.numbers = ToDevice(tokens.label_matrix, parts_.device).view({-1, kAspectNumbers});
  if (tokens.span_targets.empty()) return batch;
  std::vector<float> asks_class;
  for (const int64_t label : tokens.labels)
    asks_class.push_back(label == text::kNoClass ? 0.0f : 1.0f);
  batch.asks_class = ToDevice(asks_class, parts_.device).view({-1, 1});
  const int64_t length = tokens.length;
  batch.span_targets = ToDevice(tokens.span_targets, parts_.device).view({-1, length, kSpanEnds});
  batch.span_weights = ToDevice(tokens.span_weights, parts_.device).view({-1, length, 1});
  return batch;
}

torch::Tensor MultiQuery::SumOfLosses(const DeviceBatch& batch) {
  return SumOfQueryLosses(AnswersTo(batch), batch, loss_);
}

Metrics MultiQuery::Evaluate(std::span<const text::BatchRows> batches) {
  const EvaluationMode mode(*model_);
  const text::QuerySet& set = *parts_.data.validation_queries;
  ClassificationCounts counts(static_cast<int64_t>(parts_.data.labels.size()) - kAspectNumbers,
                              /*multi_label=*/false);
  NumberErrors errors;
  SpanScores spans;
  std::optional<QuadrupletReader> reader;
  if (set.AsksForSpans()) {
    HPO_CHECK(parts_.tokenizer != nullptr);
    reader.emplace(parts_.data, *parts_.tokenizer, parts_.max_positions);
  }
  double sum_loss = 0.0;
  int64_t queries = 0;
  for (const text::BatchRows& texts : batches) {
    for (const text::BatchRows& piece : text::QueryPieces(set, parts_.data.query_layout, texts)) {
      const DeviceBatch batch = ToTensors(text::PadQueries(set, piece, parts_.max_positions));
      const Answers answers = AnswersTo(batch);
      sum_loss += SumOfQueryLosses(answers, batch).item<double>();
      errors.Add(answers.numbers, batch.numbers);
      const QueryOutputs outputs = answers.Outputs();
      AddClasses(OnHost<int64_t>(batch.labels), outputs, counts);
      if (reader.has_value()) {
        AddSpans(set, piece, outputs, spans);
        reader->Hear(piece, outputs);
      }
      queries +=
          std::count_if(piece.begin(), piece.end(), [](int64_t query) { return query >= 0; });
    }
  }
  const auto aspects = static_cast<double>(counts.num_rows());
  const Metrics of_classes = counts.Summarize();
  Metrics metrics = {{"accuracy", of_classes.at("accuracy")},
                     {"loss", sum_loss / static_cast<double>(queries)},
                     {"macro_f1", of_classes.at("macro_f1")}};
  errors.Summarize(aspects, metrics);
  if (reader.has_value()) {
    spans.Summarize(metrics);
    FindQuadruplets(*reader, metrics);
  }
  return metrics;
}

void MultiQuery::FindQuadruplets(QuadrupletReader& reader, Metrics& metrics) {
  reader.AskOn([this](const text::TokenBatch& piece) {
    text::TokenBatch unanswered = piece;
    unanswered.labels.assign(static_cast<size_t>(piece.rows), text::kNoClass);
    return AnswersTo(ToDevice(unanswered, /*num_labels=*/0, parts_.device)).Outputs();
  });
  quadruplets_ = reader.Quadruplets();
  QuadrupletScores scores;
  for (const auto& [text, said] : quadruplets_) {
    scores.AddText(parts_.data.validation_texts[static_cast<size_t>(text)].aspects, said);
  }
  scores.Summarize(metrics);
}

std::string MultiQuery::QuadrupletLines() const {
  std::string lines;
  for (const auto& [text, said] : quadruplets_) {
    lines += text::FormatAspectLine(parts_.data.validation_texts[static_cast<size_t>(text)], said);
  }
  return lines;
}

}  // namespace hpo::trainer
