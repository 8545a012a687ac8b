// Tested by tests/worker/trainer/memory_trace_test.cc.
#include "memory/families/decoder_backbone_trace.h"

#include <utility>
#include <vector>

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

class DecoderTraceBase : public BackboneTrace {
 public:
  DecoderTraceBase(TracedDevice& device, const ModelShape& shape, const ModelParameters& parameters)
      : BackboneTrace(device, shape, parameters), activation_(*ActivationOf(shape.hidden_act)) {}

 protected:
  Activation activation() const { return activation_; }

  // worker/trainer/models/layers/attention.h.
  TracedStorage CausalBias(const TracedBatch& batch) const {
    StepTracer& tracer = device().tracer();
    const int64_t square = batch.shape.tokens * batch.shape.tokens;
    const TracedStorage later = tracer.Allocate(kBoolBytes * square);
    TracedStorage bias = tracer.Allocate(kFloatBytes * batch.shape.rows * square);
    TracedStorage is_padding;
    {
      const ops::Number zero(device(), /*element_size=*/0);
      is_padding = tracer.Allocate(kBoolBytes * batch.Tokens(), MemoryClass::kTemporary);
    }
    return bias;
  }

  // Heads side by side again: a view of what fused kernels write.
  TracedTensor JoinHeads(const TracedTensor& attended, const AttentionShape& attention) const {
    return ops::Relayout(device(), attended, attention.written_out && attention.heads > 1,
                         /*copies_back=*/false);
  }

 private:
  Activation activation_;
};

// ---- GPT-2 -------------------------------------------------------------------------------------

class Gpt2BackboneTrace final : public DecoderTraceBase {
 public:
  Gpt2BackboneTrace(TracedDevice& device, const ModelShape& shape,
                    const ModelParameters& parameters)
      : DecoderTraceBase(device, shape, parameters), layers_(MakeGpt2Layers(parameters, shape)) {}

 private:
  TracedContext ContextOf(const TracedBatch& batch) override { return {.bias = CausalBias(batch)}; }

  TracedTensor Embed(const TracedBatch& batch) override {
    const int64_t width = shape().hidden_size;
    const TracedStorage positions = device().Allocate(kIndexBytes * batch.shape.tokens);
    TracedTensor sum;
    {
      const TracedTensor places =
          Lookup(positions, batch.shape.tokens, parameters().At("transformer.wpe.weight"), width);
      const TracedTensor words =
          Lookup(batch.ids, batch.Tokens(), parameters().At("transformer.wte.weight"), width);
      sum = Dropout(ops::AddRepeated(device(), words, places), shape().embedding_dropout);
    }
    return sum;
  }

  TracedTensor RunLayer(int64_t index, const TracedTensor& hidden,
                        const TracedContext& context) override {
    const Gpt2LayerParameters& layer = layers_[static_cast<size_t>(index)];
    const double dropout = shape().hidden_dropout;
    const TracedTensor attended = ops::Add(
        device(),
        Dropout(Linear(SelfAttention(layer, LayerNorm(hidden, layer.attention_norm), context),
                       layer.attention_dense),
                dropout),
        hidden);
    return ops::Add(
        device(),
        Dropout(Linear(ops::Activate(device(),
                                     Linear(LayerNorm(attended, layer.forward_norm), layer.inner),
                                     activation()),
                       layer.outer),
                dropout),
        attended);
  }

  TracedTensor SelfAttention(const Gpt2LayerParameters& layer, const TracedTensor& hidden,
                             const TracedContext& context) {
    using Role = ops::AttentionRole;
    const AttentionShape attention = Attention();
    const std::vector<TracedTensor> parts =
        ops::Split(device(), Linear(hidden, layer.projections), 3);
    // Gradients go side by side again, whatever their layout; the key's needs no copy before.
    const TracedTensor value = ops::SplitHeads(device(), parts[2], attention, Role::kValue);
    const TracedTensor key = ops::View(device(), parts[1]);
    const TracedTensor query = ops::SplitHeads(device(), parts[0], attention, Role::kQuery);
    const TracedTensor attended =
        ops::Attention(device(), query, key, value, attention, context.bias);
    return JoinHeads(attended, attention);
  }

  TracedTensor Finish(const TracedTensor& hidden) override {
    return LayerNorm(hidden, parameters().Norm("transformer.ln_f"));
  }

  std::vector<Gpt2LayerParameters> layers_;
};

// ---- Llama, Qwen2 ------------------------------------------------------------------------------

class LlamaBackboneTrace final : public DecoderTraceBase {
 public:
  LlamaBackboneTrace(TracedDevice& device, const ModelShape& shape,
                     const ModelParameters& parameters)
      : DecoderTraceBase(device, shape, parameters), layers_(MakeLlamaLayers(parameters, shape)) {}

 private:
  int64_t Groups() const { return shape().num_heads / shape().KeyValueHeads(); }

  TracedContext ContextOf(const TracedBatch& batch) override {
    StepTracer& tracer = device().tracer();
    const int64_t size = kFloatBytes * batch.shape.tokens * shape().HeadSize();
    const TracedStorage positions = tracer.Allocate(kFloatBytes * batch.shape.tokens);
    const TracedStorage half = tracer.Allocate(size / 2);
    const TracedStorage angles = tracer.Allocate(size);
    TracedContext context{.bias = CausalBias(batch)};
    context.cosines = tracer.Allocate(size);
    context.sines = tracer.Allocate(size);
    return context;
  }

  TracedTensor Embed(const TracedBatch& batch) override {
    return Lookup(batch.ids, batch.Tokens(), parameters().At("model.embed_tokens.weight"),
                  shape().hidden_size);
  }

  TracedTensor RunLayer(int64_t index, const TracedTensor& hidden,
                        const TracedContext& context) override {
    const LlamaLayerParameters& layer = layers_[static_cast<size_t>(index)];
    const TracedTensor attended = ops::Add(
        device(),
        ops::Linear(device(), SelfAttention(layer, RmsNorm(hidden, layer.attention_norm), context),
                    layer.attention_dense),
        hidden);
    return Add(FeedForward(layer, RmsNorm(attended, layer.forward_norm)), attended);
  }

  TracedTensor Rotate(const TracedTensor& x, const TracedContext& context) {
    const TracedTensor turned = ops::RotateHalf(device(), x);
    const TracedTensor along = ops::MultiplyBy(device(), x, context.cosines, kFloatBytes);
    return ops::AddInPlace(device(), along,
                           ops::MultiplyBy(device(), turned, context.sines, kFloatBytes));
  }

  // A single head is repeated by a view.
  TracedTensor RepeatHeads(const TracedTensor& x) {
    if (Groups() == 1) return x;
    if (shape().KeyValueHeads() > 1) return ops::Repeat(device(), x, Groups());
    return ops::Narrow(device(), x, x.elements * Groups());
  }

  // Gradients of heads that were repeated come by heads.
  TracedTensor KeyHeads(const TracedTensor& projected, const AttentionShape& attention,
                        ops::AttentionRole role) const {
    if (Groups() == 1) return ops::SplitHeads(device(), projected, attention, role);
    return ops::Relayout(device(), projected, /*copies=*/false,
                         /*copies_back=*/shape().KeyValueHeads() > 1);
  }

  TracedTensor ProjectedKeys(const TracedTensor& hidden, const TracedLinear& layer,
                             const AttentionShape& attention) const {
    if (Groups() == 1) return ops::ProjectKeys(device(), hidden, layer, attention);
    return KeyHeads(Linear(hidden, layer), attention, ops::AttentionRole::kKey);
  }

  TracedTensor SelfAttention(const LlamaLayerParameters& layer, const TracedTensor& hidden,
                             const TracedContext& context) {
    using Role = ops::AttentionRole;
    AttentionShape attention = Attention();
    attention.keys_by_heads = Groups() > 1 && shape().KeyValueHeads() > 1;
    attention.keys_are_repeated_views = Groups() > 1 && shape().KeyValueHeads() == 1;
    const TracedTensor query = Rotate(
        ops::SplitHeads(device(), Linear(hidden, layer.query), attention, Role::kQuery), context);
    const TracedTensor key =
        RepeatHeads(Rotate(ProjectedKeys(hidden, layer.key, attention), context));
    const TracedTensor value =
        RepeatHeads(KeyHeads(Linear(hidden, layer.value), attention, Role::kValue));
    const TracedTensor attended =
        ops::Attention(device(), query, key, value, attention, context.bias);
    return JoinHeads(attended, attention);
  }

  TracedTensor FeedForward(const LlamaLayerParameters& layer, const TracedTensor& input) const {
    const TracedTensor gate = Activate(Linear(input, layer.gate), activation());
    return Linear(ops::Multiply(device(), gate, Linear(input, layer.up)), layer.down);
  }

  TracedTensor Finish(const TracedTensor& hidden) override {
    return RmsNorm(hidden, parameters().Norm("model.norm"));
  }

  std::vector<LlamaLayerParameters> layers_;
};

}  // namespace

std::unique_ptr<BackboneTrace> MakeGpt2BackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                     const ModelParameters& parameters) {
  return std::make_unique<Gpt2BackboneTrace>(device, shape, parameters);
}

std::unique_ptr<BackboneTrace> MakeLlamaBackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                      const ModelParameters& parameters) {
  return std::make_unique<LlamaBackboneTrace>(device, shape, parameters);
}

}  // namespace hpo::memory
