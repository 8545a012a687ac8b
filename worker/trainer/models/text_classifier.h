// A text classifier: a backbone and a head. What families differ in, common/models/model_modules
// says; callers get one from MakeTextClassifier and never name a family.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_modules.h"
#include "common/models/model_spec.h"
#include "memory/trace/execution.h"
#include "memory/trace/lora.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/backbone.h"
#include "worker/trainer/models/classification_head.h"

namespace hpo::trainer {

class TextClassifier : public torch::nn::Module {
 public:
  // As MakeTextClassifier, which checks the arguments.
  TextClassifier(const ModelShape& shape, const HeadOptions& head, torch::Device device,
                 memory::FrozenType base);

  // How forward runs from now on: layers of a recomputed segment, precision.
  void SetExecution(const memory::Execution& execution) {
    execution_ = execution;
    backbone_->SetCheckpointing(execution.checkpoint_every);
  }

  // Logits, [batch, num_labels], float32. Dropout acts while is_training(). Appends to
  // `hidden_states`, where given, as Backbone does.
  torch::Tensor forward(const ModelInput& input,
                        std::vector<torch::Tensor>* hidden_states = nullptr) {
    return Run(input, hidden_states).logits;
  }

  struct Outputs {
    torch::Tensor logits;  // as forward's
    // Logits of a span's beginning and of its end at each token, [batch, tokens, 2], float32.
    // Undefined without HeadOptions::spans.
    torch::Tensor spans;
  };
  Outputs ForwardWithSpans(const ModelInput& input) { return Run(input, nullptr); }

 private:
  Outputs Run(const ModelInput& input, std::vector<torch::Tensor>* hidden_states);
  Outputs Compute(const ModelInput& input, std::vector<torch::Tensor>* hidden_states);
  torch::Tensor Logits(torch::Tensor features);
  // The token of each row that is classified, [batch, hidden_size].
  torch::Tensor SelectToken(const torch::Tensor& hidden, const ModelInput& input) const;

  ClassifierModules modules_;
  std::shared_ptr<Backbone> backbone_;
  Linear dense_ = nullptr;  // null: none
  ClassificationHead head_ = nullptr;
  Linear span_head_ = nullptr;  // null: none; named as in the library's question answering
  double dropout_;
  memory::Execution execution_;
};

// The model that `shape.family` names, its parameters on `device` and not yet initialised
// (see weights.h). `base`: how the model under the head, which then is not trained, is stored.
//   Unimplemented    a family or activation that this trainer lacks; names those that it has
//   InvalidArgument  a dropout outside [0, 1), or a head size < 1
// Throws c10::OutOfMemoryError when the parameters do not fit.
absl::StatusOr<std::shared_ptr<TextClassifier>> MakeTextClassifier(
    const ModelShape& shape, const HeadOptions& head, torch::Device device,
    memory::FrozenType base = memory::FrozenType::kFloat32);

}  // namespace hpo::trainer
