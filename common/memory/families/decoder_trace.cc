// Llama and Qwen2: transformers/models/{llama,qwen2}/modeling_*.py, without a cache of keys.
#include <utility>
#include <vector>

#include "common/memory/families/causal_trace.h"
#include "common/memory/families/family_traces.h"
#include "common/memory/trace/layer_parameters.h"
#include "common/memory/trace/model_ops.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;

using Layer = LlamaLayerParameters;

// Cosines and sines of every position.
struct Rotation {
  TracedStorage cosines, sines;
  int64_t element_size = 4;
};

class DecoderTrace final : public ModelTrace {
 public:
  DecoderTrace(TraceOps& ops, const TracedModel& model)
      : ops_(ops),
        model_ops_(ops),
        model_(model),
        shape_(model_.shape),
        parameters_(ops, model_.tensors, model_.adapters),
        table_(parameters_.At("model.embed_tokens.weight")),
        head_(DecoderHead(parameters_, shape_, model_.head, table_)),
        layers_(LlamaLayers(parameters_, shape_)) {}

  TracedTensor Loss(const ModelBatch& batch, const TracedStorage& ids) override {
    batch_ = batch;
    return DecoderLoss(ops_, Decode(ids), model_.head, head_, batch);
  }

 private:
  // Query heads that share a key head.
  int64_t Groups() const { return shape_.num_heads / shape_.KeyValueHeads(); }
  int64_t Tokens() const { return batch_.rows * batch_.tokens; }

  TracedTensor Decode(const TracedStorage& ids) {
    const TracedTensor embedded =
        model_ops_.WordEmbedding(ids, Tokens(), table_, shape_.hidden_size, model_.checkpointing);
    const TracedStorage positions = model_ops_.Range(batch_.tokens);
    const TracedStorage mask = CausalMask(model_ops_, batch_);
    const Rotation rotation = Rotations(embedded.element_size);
    TracedTensor hidden = embedded;
    for (const Layer& layer : layers_) {
      hidden =
          RunModelLayer(ops_, model_, [this, &layer, input = hidden, rotation, mask, positions] {
            return RunLayer(layer, input, rotation);
          });
    }
    hidden = model_ops_.RmsNorm(hidden, parameters_.At("model.norm.weight"));
    return hidden;
  }

  Rotation Rotations(int64_t element_size) {
    const int64_t angles = batch_.tokens * shape_.HeadSize();
    TracedStorage positions = model_ops_.Plain(batch_.tokens, kFloat);
    const TracedStorage half = model_ops_.Plain(angles / 2, kFloat);
    positions.Reset();
    const TracedStorage whole = model_ops_.Plain(angles, kFloat);
    Rotation rotation;
    rotation.cosines = model_ops_.Plain(angles, kFloat);
    rotation.cosines = model_ops_.Plain(angles, kFloat);  // times a factor
    rotation.sines = model_ops_.Plain(angles, kFloat);
    rotation.sines = model_ops_.Plain(angles, kFloat);
    if (element_size == kFloat) return rotation;
    return {.cosines = model_ops_.Plain(angles, element_size),
            .sines = model_ops_.Plain(angles, element_size),
            .element_size = element_size};
  }

  TracedTensor RunLayer(const Layer& layer, const TracedTensor& input, const Rotation& rotation) {
    TracedTensor residual = input;
    TracedTensor hidden = model_ops_.RmsNorm(input, layer.attention_norm.weight);
    hidden = Attend(layer, hidden, rotation);
    hidden = ops_.Add(residual, hidden);
    residual = hidden;
    hidden = model_ops_.RmsNorm(hidden, layer.forward_norm.weight);
    hidden = FeedForward(layer, hidden);
    hidden = ops_.Add(residual, hidden);
    return hidden;
  }

  TracedTensor FeedForward(const Layer& layer, const TracedTensor& input) {
    TracedTensor inner = ops_.Linear(input, layer.gate);
    inner = model_ops_.Activate(inner, shape_.hidden_act);
    {
      const TracedTensor up = ops_.Linear(input, layer.up);
      inner = ops_.Multiply(inner, up);
    }
    return ops_.Linear(inner, layer.down);
  }

  // Heads apart, as a view. Its gradient is put together again by a copy, unless it comes from the
  // attention itself, which lays it out as the projection does.
  TracedTensor Heads(const TracedTensor& input, const TracedLinear& projection,
                     bool copies_back = true) {
    const TracedTensor projected = ops_.Linear(input, projection);
    return copies_back ? ops_.Select(projected, 1) : model_ops_.View(projected);
  }

  TracedTensor Attend(const Layer& layer, const TracedTensor& input, const Rotation& rotation) {
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
    return ops_.Linear(context, layer.attention_dense);
  }

  TracedTensor AttendTo(const TracedTensor& query, const TracedTensor& key,
                        const TracedTensor& value) {
    const TracedTensor repeated = Groups() == 1 ? key : model_ops_.Repeat(key, Groups());
    const TracedTensor values = Groups() == 1 ? value : model_ops_.Repeat(value, Groups());
    // Under autocast turning made them float32. The last argument is cast first.
    const TracedTensor keys = ops_.CastForProduct(repeated);
    const TracedTensor queries = ops_.CastForProduct(query);
    const AttentionShape attention = AttentionOf(shape_, batch_);
    return ops_.Attention(queries, keys, values, attention,
                          model_ops_.AttentionBias(batch_.rows, batch_.tokens, queries));
  }

  // x cos + (-x2, x1) sin.
  TracedTensor Rotate(const TracedTensor& x, const Rotation& rotation) {
    const TracedTensor along = model_ops_.MultiplyBy(x, rotation.cosines, rotation.element_size);
    TracedTensor across;
    {
      const TracedTensor turned = model_ops_.RotateHalf(x);
      across = model_ops_.MultiplyBy(turned, rotation.sines, rotation.element_size);
    }
    return ops_.Add(along, across);
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

std::unique_ptr<ModelTrace> MakeDecoderTrace(TraceOps& ops, const TracedModel& model) {
  return std::make_unique<DecoderTrace>(ops, model);
}

}  // namespace hpo
