// Tested by tests/memory/offline/traces/model_trace_test.cc.
#include "memory/offline/traces/decoder_trace.h"

#include <utility>
#include <vector>

#include "memory/offline/traces/causal_trace.h"
#include "memory/ops/attention_ops.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/layer_parameters.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

// Cosines and sines of every position.
struct Rotation {
  TracedStorage cosines, sines;
  int64_t element_size = 4;
};

class DecoderTrace final : public CausalTrace {
 public:
  DecoderTrace(TracedDevice& device, const TracedModel& model)
      : CausalTrace(device, model, "model.embed_tokens.weight"),
        layers_(MakeLlamaLayers(parameters_, shape_)) {}

 private:
  // Query heads that share a key head.
  int64_t Groups() const { return shape_.num_heads / shape_.KeyValueHeads(); }
  int64_t Tokens() const { return batch_.rows * batch_.tokens; }

  TracedTensor Decode(const TracedStorage& ids) override {
    const TracedTensor embedded = ops::WordEmbedding(device_, ids, Tokens(), table_,
                                                     shape_.hidden_size, model_.checkpointing);
    const TracedStorage positions = ops::Range(device_, batch_.tokens);
    const TracedStorage mask = CausalMask(device_, batch_);
    const Rotation rotation = Rotations(embedded.element_size);
    TracedTensor hidden = embedded;
    for (const LlamaLayerParameters& layer : layers_) {
      hidden =
          RunModelLayer(device_, model_, [this, &layer, input = hidden, rotation, mask, positions] {
            return RunLayer(layer, input, rotation);
          });
    }
    hidden = ops::RmsNorm(device_, hidden, parameters_.At("model.norm.weight"));
    return hidden;
  }

  Rotation Rotations(int64_t element_size) {
    const int64_t angles = batch_.tokens * shape_.HeadSize();
    TracedStorage positions = ops::Plain(device_, batch_.tokens, kFloatBytes);
    const TracedStorage half = ops::Plain(device_, angles / 2, kFloatBytes);
    positions.Reset();
    const TracedStorage whole = ops::Plain(device_, angles, kFloatBytes);
    Rotation rotation;
    rotation.cosines = ops::Plain(device_, angles, kFloatBytes);
    rotation.cosines = ops::Plain(device_, angles, kFloatBytes);  // times a factor
    rotation.sines = ops::Plain(device_, angles, kFloatBytes);
    rotation.sines = ops::Plain(device_, angles, kFloatBytes);
    if (element_size == kFloatBytes) return rotation;
    return {.cosines = ops::Plain(device_, angles, element_size),
            .sines = ops::Plain(device_, angles, element_size),
            .element_size = element_size};
  }

  TracedTensor RunLayer(const LlamaLayerParameters& layer, const TracedTensor& input,
                        const Rotation& rotation) {
    TracedTensor residual = input;
    TracedTensor hidden = ops::RmsNorm(device_, input, layer.attention_norm.weight);
    hidden = Attend(layer, hidden, rotation);
    hidden = ops::Add(device_, residual, hidden);
    residual = hidden;
    hidden = ops::RmsNorm(device_, hidden, layer.forward_norm.weight);
    hidden = FeedForward(layer, hidden);
    hidden = ops::Add(device_, residual, hidden);
    return hidden;
  }

  TracedTensor FeedForward(const LlamaLayerParameters& layer, const TracedTensor& input) {
    TracedTensor inner = ops::Linear(device_, input, layer.gate);
    inner = ops::Activate(device_, inner, shape_.hidden_act);
    {
      const TracedTensor up = ops::Linear(device_, input, layer.up);
      inner = ops::Multiply(device_, inner, up);
    }
    return ops::Linear(device_, inner, layer.down);
  }

  // Heads apart, as a view. Its gradient is put together again by a copy, unless it comes from the
  // attention itself, which lays it out as the projection does.
  TracedTensor Heads(const TracedTensor& input, const TracedLinear& projection,
                     bool copies_back = true) {
    const TracedTensor projected = ops::Linear(device_, input, projection);
    return copies_back ? ops::Select(device_, projected, 1) : ops::View(device_, projected);
  }

  TracedTensor Attend(const LlamaLayerParameters& layer, const TracedTensor& input,
                      const Rotation& rotation) {
    TracedTensor query = Heads(input, layer.query);
    TracedTensor key = Heads(input, layer.key);
    const TracedTensor value = Heads(input, layer.value, /*copies_back=*/Groups() > 1);
    {
      TracedTensor turned_query = Rotate(query, rotation);
      TracedTensor turned_key = Rotate(key, rotation);
      query = std::move(turned_query);
      key = std::move(turned_key);
    }
    const TracedTensor context = AttendTo(query, key, value);
    return ops::Linear(device_, context, layer.attention_dense);
  }

  TracedTensor AttendTo(const TracedTensor& query, const TracedTensor& key,
                        const TracedTensor& value) {
    const TracedTensor repeated = Groups() == 1 ? key : ops::Repeat(device_, key, Groups());
    const TracedTensor values = Groups() == 1 ? value : ops::Repeat(device_, value, Groups());
    // Under autocast turning made them float32. The last argument is cast first.
    const TracedTensor keys = ops::CastForProduct(device_, repeated);
    const TracedTensor queries = ops::CastForProduct(device_, query);
    const AttentionShape attention = AttentionOf(shape_, batch_);
    return ops::Attention(device_, queries, keys, values, attention,
                          ops::AttentionBias(device_, batch_.rows, batch_.tokens, queries));
  }

  // x cos + (-x2, x1) sin.
  TracedTensor Rotate(const TracedTensor& x, const Rotation& rotation) {
    const TracedTensor along = ops::MultiplyBy(device_, x, rotation.cosines, rotation.element_size);
    TracedTensor across;
    {
      const TracedTensor turned = ops::RotateHalf(device_, x);
      across = ops::MultiplyBy(device_, turned, rotation.sines, rotation.element_size);
    }
    return ops::Add(device_, along, across);
  }

  const std::vector<LlamaLayerParameters> layers_;
};

}  // namespace

std::unique_ptr<ModelTrace> MakeDecoderTrace(TracedDevice& device, const TracedModel& model) {
  return std::make_unique<DecoderTrace>(device, model);
}

}  // namespace hpo::memory
