#include "worker/trainer/models/language_model.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/models/model_modules.h"
#include "worker/trainer/models/layers/base_storage.h"

namespace hpo::trainer {

LanguageModel::LanguageModel(const ModelShape& shape, torch::Device device,
                             memory::FrozenType base) {
  {
    const BaseStorageScope storage(base, device);
    backbone_ = register_module(ModulesOf(*ModelFamilyOf(shape.family)).prefix,
                                MakeBackbone(shape, device));
  }
  if (shape.tied_head) return;
  head_ = register_module("lm_head",
                          Linear(shape.hidden_size, shape.vocab_size, device, /*with_bias=*/false));
}

torch::Tensor LanguageModel::forward(const ModelInput& input,
                                     std::vector<torch::Tensor>* hidden_states) {
  return backbone_->forward(input, hidden_states);
}

torch::Tensor LanguageModel::HeadWeight() const {
  return head_ ? head_->weight : backbone_->WordEmbeddings();
}

absl::StatusOr<std::shared_ptr<LanguageModel>> MakeLanguageModel(const ModelShape& shape,
                                                                 torch::Device device,
                                                                 memory::FrozenType base) {
  HPO_RETURN_IF_ERROR(CheckTrainable(shape));
  if (!IsDecoder(*ModelFamilyOf(shape.family))) {
    return absl::InvalidArgumentError(
        absl::StrCat("model_type: expected gpt2, llama or qwen2 for language modelling, got '",
                     shape.family, "'"));
  }
  return std::make_shared<LanguageModel>(shape, device, base);
}

}  // namespace hpo::trainer
