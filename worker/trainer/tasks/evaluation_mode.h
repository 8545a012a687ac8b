// A model in evaluation: no dropout, no gradients.
#pragma once

#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// Back to training mode, also when an exception passes.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& model) : model_(model) { model_.eval(); }
  ~EvaluationMode() { model_.train(); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& model_;
  const torch::NoGradGuard no_grad_;
};

}  // namespace hpo::trainer
