#include "worker/trainer/models/backbone.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/trainer/models/bert_model.h"
#include "worker/trainer/models/deberta_model.h"
#include "worker/trainer/models/gpt2_model.h"
#include "worker/trainer/models/layers.h"
#include "worker/trainer/models/llama_model.h"

namespace hpo {

torch::Tensor Backbone::forward(const ModelInput& input,
                                std::vector<torch::Tensor>* hidden_states) {
  const LayerContext context = ContextOf(input);
  torch::Tensor hidden = Embed(input);
  for (const auto& layer : layers_) {
    if (hidden_states != nullptr) hidden_states->push_back(hidden);
    hidden = layer->forward(hidden, context);
  }
  hidden = Finish(hidden);
  if (hidden_states != nullptr) hidden_states->push_back(hidden);
  return hidden;
}

void Backbone::AddLayers(absl::string_view path, int64_t count,
                         const std::function<std::shared_ptr<TransformerLayer>(int64_t)>& make) {
  torch::nn::Module& list = ModuleAt(*this, path);
  for (int64_t i = 0; i < count; ++i) {
    layers_.push_back(list.register_module(absl::StrCat(i), make(i)));
  }
}

std::shared_ptr<Backbone> MakeBackbone(const ModelShape& shape, torch::Device device) {
  switch (*ModelFamilyOf(shape.family)) {
    case ModelFamily::kBert:
    case ModelFamily::kRoberta:
    case ModelFamily::kElectra:
    case ModelFamily::kDistilBert:
      return std::make_shared<BertModel>(shape, device);
    case ModelFamily::kDeberta:
      return std::make_shared<DebertaModel>(shape, device);
    case ModelFamily::kGpt2:
      return std::make_shared<Gpt2Model>(shape, device);
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      break;
  }
  return std::make_shared<LlamaModel>(shape, device);
}

}  // namespace hpo
