// Task "multi-query": of every aspect of a text its class, its valence and its arousal; and task
// "multi-query-spans", which asks too where in the text aspects and opinions are.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/trainer/models/text_classifier.h"
#include "worker/trainer/scores/class_weights.h"
#include "worker/trainer/tasks/quadruplet_reader.h"
#include "worker/trainer/tasks/task.h"

namespace hpo::trainer {

// The model answers a query, an aspect with its text, by a logit for each class and two numbers.
// The loss is the mean over aspects, those of the whole effective batch, of the class's cross
// entropy, in training smoothed and times its class's weight, plus the mean squared error of the
// two numbers, whatever the layout of the queries (worker/text/batching/query_set.h). Metrics over
// aspects: "accuracy" and "macro_f1" of the class; "valence_rmse", "arousal_rmse", and "va_rmse",
// the root of the mean of both squared errors' sum, as DimABSA ranks; "loss".
//
// With spans the model answers every query by two more logits for each token, where a span begins
// and where one ends, and a query's loss is what it is asked for: that of its aspect, or the mean
// over its text's tokens and the two of their binary cross entropy. The loss is the mean over all
// queries; metrics also "aspect_f1" and "opinion_f1" (training/span_scores.h), and of the
// quadruplets that rounds of questions find (quadruplet_reader.h) "quadruplet_f1" and
// "quadruplet_cf1" (training/quadruplet_scores.h).
class MultiQuery final : public Task {
 public:
  // parts.data has queries; where they ask for spans, the model has HeadOptions::spans, and parts
  // a tokenizer.
  MultiQuery(std::shared_ptr<TextClassifier> model, const TaskParts& parts,
             const LabelLoss& loss = {})
      : model_(std::move(model)), parts_(parts), loss_(ToDevice(loss, parts.device)) {}

  torch::nn::Module& module() override { return *model_; }
  void SetExecution(const memory::Execution& execution) override {
    model_->SetExecution(execution);
  }
  double WeightOf(std::span<const int64_t> rows) const override;
  std::vector<text::BatchRows> PiecesOf(std::span<const int64_t> rows) const override;
  text::TokenBatch TokensOf(std::span<const int64_t> rows) const override;
  DeviceBatch ToTensors(const text::TokenBatch& tokens) const override;
  torch::Tensor SumOfLosses(const DeviceBatch& batch) override;
  Metrics Evaluate(std::span<const text::BatchRows> batches) override;
  std::string QuadrupletLines() const override;

 private:
  struct Answers;
  Answers AnswersTo(const DeviceBatch& batch);
  // The rounds, and their metrics.
  void FindQuadruplets(QuadrupletReader& reader, Metrics& metrics);
  torch::Tensor SumOfQueryLosses(const Answers& answers, const DeviceBatch& batch,
                                 const ClassLossOptions& loss = {}) const;

  const std::shared_ptr<TextClassifier> model_;
  const TaskParts parts_;
  const ClassLossOptions loss_;
  std::map<int64_t, std::vector<text::Aspect>> quadruplets_;  // of the last Evaluate, by text
};

}  // namespace hpo::trainer
