#include "memory/offline/traces/gpt2_trace.h"

#include <vector>

#include "memory/offline/traces/causal_trace.h"
#include "memory/ops/attention_ops.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/layer_parameters.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

class Gpt2Trace final : public CausalTrace {
 public:
  Gpt2Trace(TracedDevice& device, const TracedModel& model)
      : CausalTrace(device, model, "transformer.wte.weight"),
        layers_(MakeGpt2Layers(parameters_, shape_)) {}

 private:
  TracedTensor Decode(const TracedStorage& ids) override {
    const int64_t width = shape_.hidden_size;
    const TracedTensor words = ops::WordEmbedding(device_, ids, batch_.rows * batch_.tokens, table_,
                                                  width, model_.checkpointing);
    const TracedStorage position_ids = ops::Range(device_, batch_.tokens);
    const TracedTensor places = ops::Embedding(device_, position_ids, batch_.tokens,
                                               parameters_.At("transformer.wpe.weight"), width);
    TracedTensor hidden = ops::AddRepeated(device_, words, places);
    const TracedStorage mask = CausalMask(device_, batch_);
    hidden = ops::Dropout(device_, hidden, shape_.embedding_dropout);
    for (const Gpt2LayerParameters& layer : layers_) {
      hidden = RunModelLayer(device_, model_, [this, &layer, input = hidden, mask, position_ids] {
        return RunLayer(layer, input);
      });
    }
    hidden = ops::LayerNorm(device_, hidden, parameters_.Norm("transformer.ln_f"));
    return hidden;
  }

  TracedTensor RunLayer(const Gpt2LayerParameters& layer, const TracedTensor& input) {
    TracedTensor hidden = ops::LayerNorm(device_, input, layer.attention_norm);
    const TracedTensor attended = Attend(layer, hidden);
    hidden = ops::Add(device_, attended, input);
    const TracedTensor residual = hidden;
    hidden = ops::LayerNorm(device_, hidden, layer.forward_norm);
    const TracedTensor fed_forward = FeedForward(layer, hidden);
    hidden = ops::Add(device_, residual, fed_forward);
    return hidden;
  }

  TracedTensor FeedForward(const Gpt2LayerParameters& layer, const TracedTensor& input) {
    TracedTensor hidden = ops::Linear(device_, input, layer.inner);
    hidden = ops::Activate(device_, hidden, shape_.hidden_act);
    hidden = ops::Linear(device_, hidden, layer.outer);
    hidden = ops::Dropout(device_, hidden, shape_.hidden_dropout);
    return hidden;
  }

  TracedTensor Attend(const Gpt2LayerParameters& layer, const TracedTensor& input) {
    const std::vector<TracedTensor> parts =
        ops::Split(device_, ops::Linear(device_, input, layer.projections), /*parts=*/3);
    const AttentionShape attention = AttentionOf(shape_, batch_);
    TracedTensor output =
        ops::Attention(device_, parts[0], parts[1], parts[2], attention,
                       ops::AttentionBias(device_, batch_.rows, batch_.tokens, parts[0]));
    output = ops::Linear(device_, output, layer.attention_dense);
    output = ops::Dropout(device_, output, shape_.hidden_dropout);
    return output;
  }

  const std::vector<Gpt2LayerParameters> layers_;
};

}  // namespace

std::unique_ptr<ModelTrace> MakeGpt2Trace(TracedDevice& device, const TracedModel& model) {
  return std::make_unique<Gpt2Trace>(device, model);
}

}  // namespace hpo::memory
