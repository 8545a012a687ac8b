// A decoder with a language-model head. The head's product is left to the caller, who may take it
// in pieces: logits of all tokens at once are [batch, tokens, vocab_size].
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_spec.h"
#include "memory/trace/lora.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/backbone.h"
#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {

class LanguageModel : public torch::nn::Module {
 public:
  // As MakeLanguageModel, which checks the arguments.
  LanguageModel(const ModelShape& shape, torch::Device device, memory::FrozenType base);

  // See Backbone.
  void SetCheckpointing(int64_t every) { backbone_->SetCheckpointing(every); }

  // The last hidden state, normed: [batch, tokens, hidden_size]. Appends to `hidden_states`, where
  // given, as Backbone does.
  torch::Tensor forward(const ModelInput& input,
                        std::vector<torch::Tensor>* hidden_states = nullptr);

  // [vocab_size, hidden_size]; a row of logits is the last hidden state times its transpose. Where
  // the model ties it, it is the word embeddings' own parameter, in the type that they are stored
  // in.
  torch::Tensor HeadWeight() const;

 private:
  std::shared_ptr<Backbone> backbone_;
  Linear head_ = nullptr;  // null: tied
};

// Parameters on `device`, not yet initialised (see weights.h). `base`: how the linear layers and
// embeddings of the backbone are stored, which other types than kFloat32 freeze (base_storage.h).
//   Unimplemented    a family or activation that this trainer lacks
//   InvalidArgument  not a decoder
// Throws c10::OutOfMemoryError when the parameters do not fit.
absl::StatusOr<std::shared_ptr<LanguageModel>> MakeLanguageModel(
    const ModelShape& shape, torch::Device device,
    memory::FrozenType base = memory::FrozenType::kFloat32);

}  // namespace hpo::trainer
