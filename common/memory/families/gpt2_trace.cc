// GPT-2: transformers/models/gpt2/modeling_gpt2.py, without a cache of keys.
#include <vector>

#include "common/memory/families/causal_trace.h"
#include "common/memory/families/family_traces.h"
#include "common/memory/trace/layer_parameters.h"
#include "common/memory/trace/model_ops.h"

namespace hpo {
namespace {

using Layer = Gpt2LayerParameters;

class Gpt2Trace final : public ModelTrace {
 public:
  Gpt2Trace(TraceOps& ops, const TracedModel& model)
      : ops_(ops),
        model_ops_(ops),
        model_(model),
        shape_(model_.shape),
        parameters_(ops, model_.tensors, model_.adapters),
        table_(parameters_.At("transformer.wte.weight")),
        head_(DecoderHead(parameters_, shape_, model_.head, table_)),
        layers_(Gpt2Layers(parameters_, shape_)) {}

  TracedTensor Loss(const ModelBatch& batch, const TracedStorage& ids) override {
    batch_ = batch;
    return DecoderLoss(ops_, Decode(ids), model_.head, head_, batch);
  }

 private:
  TracedTensor Decode(const TracedStorage& ids) {
    const int64_t width = shape_.hidden_size;
    const TracedTensor words = model_ops_.WordEmbedding(ids, batch_.rows * batch_.tokens, table_,
                                                        width, model_.checkpointing);
    const TracedStorage position_ids = model_ops_.Range(batch_.tokens);
    const TracedTensor places = ops_.Embedding(position_ids, batch_.tokens,
                                               parameters_.At("transformer.wpe.weight"), width);
    TracedTensor hidden = ops_.AddRepeated(words, places);
    const TracedStorage mask = CausalMask(model_ops_, batch_);
    hidden = ops_.Dropout(hidden, shape_.embedding_dropout);
    for (const Layer& layer : layers_) {
      hidden = RunModelLayer(ops_, model_, [this, &layer, input = hidden, mask, position_ids] {
        return RunLayer(layer, input);
      });
    }
    hidden = ops_.LayerNorm(hidden, parameters_.Norm("transformer.ln_f"));
    return hidden;
  }

  TracedTensor RunLayer(const Layer& layer, const TracedTensor& input) {
    TracedTensor hidden = ops_.LayerNorm(input, layer.attention_norm);
    const TracedTensor attended = Attend(layer, hidden);
    hidden = ops_.Add(attended, input);
    const TracedTensor residual = hidden;
    hidden = ops_.LayerNorm(hidden, layer.forward_norm);
    const TracedTensor fed_forward = FeedForward(layer, hidden);
    hidden = ops_.Add(residual, fed_forward);
    return hidden;
  }

  TracedTensor FeedForward(const Layer& layer, const TracedTensor& input) {
    TracedTensor hidden = ops_.Linear(input, layer.inner);
    hidden = model_ops_.Activate(hidden, shape_.hidden_act);
    hidden = ops_.Linear(hidden, layer.outer);
    hidden = ops_.Dropout(hidden, shape_.hidden_dropout);
    return hidden;
  }

  TracedTensor Attend(const Layer& layer, const TracedTensor& input) {
    const std::vector<TracedTensor> parts =
        model_ops_.Split(ops_.Linear(input, layer.projections), /*parts=*/3);
    const AttentionShape attention = AttentionOf(shape_, batch_);
    TracedTensor output =
        ops_.Attention(parts[0], parts[1], parts[2], attention,
                       model_ops_.AttentionBias(batch_.rows, batch_.tokens, parts[0]));
    output = ops_.Linear(output, layer.attention_dense);
    output = ops_.Dropout(output, shape_.hidden_dropout);
    return output;
  }

  TraceOps& ops_;
  ModelOps model_ops_;
  const TracedModel model_;
  const ModelShape& shape_;
  ModelParameters parameters_;
  TracedParameter table_;
  TracedLinear head_;
  std::vector<Layer> layers_;
  ModelBatch batch_;
};

}  // namespace

std::unique_ptr<ModelTrace> MakeGpt2Trace(TraceOps& ops, const TracedModel& model) {
  return std::make_unique<Gpt2Trace>(ops, model);
}

}  // namespace hpo
