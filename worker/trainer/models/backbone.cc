#include "worker/trainer/models/backbone.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/trainer/base/autocast.h"
#include "worker/trainer/models/adapters/frozen_parameters.h"
#include "worker/trainer/models/bert_model.h"
#include "worker/trainer/models/deberta_model.h"
#include "worker/trainer/models/gpt2_model.h"
#include "worker/trainer/models/layers/layers.h"
#include "worker/trainer/models/layers/recomputation.h"
#include "worker/trainer/models/llama_model.h"

namespace hpo::trainer {

torch::Tensor Backbone::forward(const ModelInput& input,
                                std::vector<torch::Tensor>* hidden_states) {
  LayerContext context = ContextOf(input);
  const AutocastState autocast(input.ids.device());
  // Kernels want one type.
  if (autocast.enabled && context.bias.defined()) context.bias = context.bias.to(autocast.type);
  torch::Tensor hidden = Embed(input);
  const auto num_layers = static_cast<int64_t>(layers_.size());
  const int64_t every = is_training() && hidden_states == nullptr ? checkpoint_every_ : 0;
  for (int64_t first = 0; first < num_layers;) {
    if (hidden_states != nullptr) hidden_states->push_back(hidden);
    const int64_t count = std::min(std::max<int64_t>(every, 1), num_layers - first);
    hidden = every > 0 ? RunRecomputedLayers(first, count, hidden, context)
                       : RunLayers(first, count, hidden, context);
    first += count;
  }
  hidden = Finish(hidden);
  if (hidden_states != nullptr) hidden_states->push_back(hidden);
  return hidden;
}

torch::Tensor Backbone::RunLayers(int64_t first, int64_t count, torch::Tensor hidden,
                                  const LayerContext& context) const {
  for (int64_t i = first; i < first + count; ++i) {
    hidden = layers_[static_cast<size_t>(i)]->forward(hidden, context);
  }
  return hidden;
}

torch::Tensor Backbone::RunRecomputedLayers(int64_t first, int64_t count,
                                            const torch::Tensor& hidden,
                                            const LayerContext& context) const {
  std::vector<torch::Tensor> inputs = {hidden};
  if (context.relative.defined()) inputs.push_back(context.relative);
  const auto segment = [this, first, count, context](const std::vector<torch::Tensor>& given) {
    LayerContext own = context;
    if (given.size() > 1) own.relative = given[1];
    return RunLayers(first, count, given.front(), own);
  };
  const auto begin = layers_.begin() + first;
  const bool trains = std::any_of(begin, begin + count,
                                  [](const auto& layer) { return HasTrainedParameters(*layer); });
  return RunRecomputed(segment, std::move(inputs), trains);
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

}  // namespace hpo::trainer
