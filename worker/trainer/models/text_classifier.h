// A text classifier: an encoder and a head. One implementation per model family; callers get one
// from MakeTextClassifier and never name a family.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/memory/execution.h"
#include "common/model_spec.h"
#include "worker/trainer/models/bert_encoder.h"
#include "worker/trainer/models/classification_head.h"
#include "worker/trainer/torch_headers.h"

namespace hpo {

class TextClassifier : public torch::nn::Module {
 public:
  // How forward runs from now on: layers of a recomputed segment, precision.
  void SetExecution(const Execution& execution) { execution_ = execution; }

  // Logits, [batch, num_labels]. Dropout acts while is_training().
  virtual torch::Tensor forward(const EncoderInput& input) = 0;

  // As forward; appends the embeddings' output and each layer's to `hidden_states`.
  virtual torch::Tensor Trace(const EncoderInput& input,
                              std::vector<torch::Tensor>& hidden_states) = 0;

 protected:
  Execution execution_;
};

// The model that `shape.family` names, its parameters on `device` and not yet initialised
// (see weights.h).
//   Unimplemented    a family or activation that this trainer lacks
//   InvalidArgument  a dropout outside [0, 1), or a head size < 1
// Throws c10::OutOfMemoryError when the parameters do not fit.
absl::StatusOr<std::shared_ptr<TextClassifier>> MakeTextClassifier(const ModelShape& shape,
                                                                   const HeadOptions& head,
                                                                   torch::Device device);

}  // namespace hpo
