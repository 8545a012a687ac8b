// worker/trainer/models/gpt2_model.cc and llama_model.cc.
#include <utility>
#include <vector>

#include "common/memory/families/trained_families.h"
#include "common/memory/trace/layer_parameters.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;
constexpr int64_t kFloat = 4;
constexpr int64_t kBool = 1;

class DecoderTraceBase : public BackboneTrace {
 public:
  DecoderTraceBase(TraceOps& ops, const ModelShape& shape, const ModelParameters& parameters)
      : BackboneTrace(ops, shape, parameters),
        model_ops_(ops),
        activation_(*ActivationOf(shape.hidden_act)) {}

 protected:
  ModelOps& model_ops() { return model_ops_; }
  Activation activation() const { return activation_; }

  // worker/trainer/models/attention.h.
  TracedStorage CausalBias(const TracedBatch& batch) const {
    StepTracer& tracer = ops().tracer();
    const int64_t square = batch.shape.tokens * batch.shape.tokens;
    const TracedStorage later = tracer.Allocate(kBool * square);
    TracedStorage bias = tracer.Allocate(kFloat * batch.shape.rows * square);
    TracedStorage is_padding;
    {
      const TraceOps::Number zero(ops(), /*element_size=*/0);
      is_padding = tracer.Allocate(kBool * batch.Tokens(), MemoryClass::kTemporary);
    }
    return bias;
  }

  // Heads side by side again: a view of what fused kernels write.
  TracedTensor JoinHeads(const TracedTensor& attended, const AttentionShape& attention) const {
    return ops().Relayout(attended, attention.written_out && attention.heads > 1,
                          /*copies_back=*/false);
  }

 private:
  ModelOps model_ops_;
  Activation activation_;
};

// ---- GPT-2 -------------------------------------------------------------------------------------

class Gpt2BackboneTrace final : public DecoderTraceBase {
 public:
  Gpt2BackboneTrace(TraceOps& ops, const ModelShape& shape, const ModelParameters& parameters)
      : DecoderTraceBase(ops, shape, parameters), layers_(Gpt2Layers(parameters, shape)) {}

 private:
  TracedContext ContextOf(const TracedBatch& batch) override { return {.bias = CausalBias(batch)}; }

  TracedTensor Embed(const TracedBatch& batch) override {
    const int64_t width = shape().hidden_size;
    const TracedStorage positions = ops().tracer().Allocate(kIndex * batch.shape.tokens);
    TracedTensor sum;
    {
      const TracedTensor places =
          Lookup(positions, batch.shape.tokens, parameters().At("transformer.wpe.weight"), width);
      const TracedTensor words =
          Lookup(batch.ids, batch.Tokens(), parameters().At("transformer.wte.weight"), width);
      sum = Dropout(ops().AddRepeated(words, places), shape().embedding_dropout);
    }
    return sum;
  }

  TracedTensor RunLayer(int64_t index, const TracedTensor& hidden,
                        const TracedContext& context) override {
    const Gpt2LayerParameters& layer = layers_[static_cast<size_t>(index)];
    const double dropout = shape().hidden_dropout;
    const TracedTensor attended = ops().Add(
        Dropout(ops().Linear(
                    SelfAttention(layer, ops().LayerNorm(hidden, layer.attention_norm), context),
                    layer.attention_dense),
                dropout),
        hidden);
    return ops().Add(
        Dropout(
            ops().Linear(ops().Activate(ops().Linear(ops().LayerNorm(attended, layer.forward_norm),
                                                     layer.inner),
                                        activation()),
                         layer.outer),
            dropout),
        attended);
  }

  TracedTensor SelfAttention(const Gpt2LayerParameters& layer, const TracedTensor& hidden,
                             const TracedContext& context) {
    using Role = TraceOps::AttentionRole;
    const AttentionShape attention = Attention();
    const std::vector<TracedTensor> parts =
        model_ops().Split(ops().Linear(hidden, layer.projections), 3);
    // Gradients go side by side again, whatever their layout; the key's needs no copy before.
    const TracedTensor value = ops().SplitHeads(parts[2], attention, Role::kValue);
    const TracedTensor key = model_ops().View(parts[1]);
    const TracedTensor query = ops().SplitHeads(parts[0], attention, Role::kQuery);
    const TracedTensor attended = ops().Attention(query, key, value, attention, context.bias);
    return JoinHeads(attended, attention);
  }

  TracedTensor Finish(const TracedTensor& hidden) override {
    return ops().LayerNorm(hidden, parameters().Norm("transformer.ln_f"));
  }

  std::vector<Gpt2LayerParameters> layers_;
};

// ---- Llama, Qwen2 ------------------------------------------------------------------------------

class LlamaBackboneTrace final : public DecoderTraceBase {
 public:
  LlamaBackboneTrace(TraceOps& ops, const ModelShape& shape, const ModelParameters& parameters)
      : DecoderTraceBase(ops, shape, parameters), layers_(LlamaLayers(parameters, shape)) {}

 private:
  int64_t Groups() const { return shape().num_heads / shape().KeyValueHeads(); }

  TracedContext ContextOf(const TracedBatch& batch) override {
    StepTracer& tracer = ops().tracer();
    const int64_t size = kFloat * batch.shape.tokens * shape().HeadSize();
    const TracedStorage positions = tracer.Allocate(kFloat * batch.shape.tokens);
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
    const TracedTensor attended = ops().Add(
        ops().Linear(SelfAttention(layer, ops().RmsNorm(hidden, layer.attention_norm), context),
                     layer.attention_dense),
        hidden);
    return ops().Add(FeedForward(layer, ops().RmsNorm(attended, layer.forward_norm)), attended);
  }

  TracedTensor Rotate(const TracedTensor& x, const TracedContext& context) {
    const TracedTensor turned = model_ops().RotateHalf(x);
    const TracedTensor along = model_ops().MultiplyBy(x, context.cosines, kFloat);
    return model_ops().AddInPlace(along, model_ops().MultiplyBy(turned, context.sines, kFloat));
  }

  // A single head is repeated by a view.
  TracedTensor RepeatHeads(const TracedTensor& x) {
    if (Groups() == 1) return x;
    if (shape().KeyValueHeads() > 1) return model_ops().Repeat(x, Groups());
    return model_ops().Narrow(x, x.elements * Groups());
  }

  // Gradients of heads that were repeated come by heads.
  TracedTensor KeyHeads(const TracedTensor& projected, const AttentionShape& attention,
                        TraceOps::AttentionRole role) const {
    if (Groups() == 1) return ops().SplitHeads(projected, attention, role);
    return ops().Relayout(projected, /*copies=*/false,
                          /*copies_back=*/shape().KeyValueHeads() > 1);
  }

  TracedTensor ProjectedKeys(const TracedTensor& hidden, const TracedLinear& layer,
                             const AttentionShape& attention) const {
    if (Groups() == 1) return ops().ProjectKeys(hidden, layer, attention);
    return KeyHeads(ops().Linear(hidden, layer), attention, TraceOps::AttentionRole::kKey);
  }

  TracedTensor SelfAttention(const LlamaLayerParameters& layer, const TracedTensor& hidden,
                             const TracedContext& context) {
    using Role = TraceOps::AttentionRole;
    AttentionShape attention = Attention();
    attention.keys_by_heads = Groups() > 1 && shape().KeyValueHeads() > 1;
    attention.keys_are_repeated_views = Groups() > 1 && shape().KeyValueHeads() == 1;
    const TracedTensor query = Rotate(
        ops().SplitHeads(ops().Linear(hidden, layer.query), attention, Role::kQuery), context);
    const TracedTensor key =
        RepeatHeads(Rotate(ProjectedKeys(hidden, layer.key, attention), context));
    const TracedTensor value =
        RepeatHeads(KeyHeads(ops().Linear(hidden, layer.value), attention, Role::kValue));
    const TracedTensor attended = ops().Attention(query, key, value, attention, context.bias);
    return JoinHeads(attended, attention);
  }

  TracedTensor FeedForward(const LlamaLayerParameters& layer, const TracedTensor& input) const {
    const TracedTensor gate = ops().Activate(ops().Linear(input, layer.gate), activation());
    return ops().Linear(ops().Multiply(gate, ops().Linear(input, layer.up)), layer.down);
  }

  TracedTensor Finish(const TracedTensor& hidden) override {
    return ops().RmsNorm(hidden, parameters().Norm("model.norm"));
  }

  std::vector<LlamaLayerParameters> layers_;
};

}  // namespace

std::unique_ptr<BackboneTrace> MakeGpt2BackboneTrace(TraceOps& ops, const ModelShape& shape,
                                                     const ModelParameters& parameters) {
  return std::make_unique<Gpt2BackboneTrace>(ops, shape, parameters);
}

std::unique_ptr<BackboneTrace> MakeLlamaBackboneTrace(TraceOps& ops, const ModelShape& shape,
                                                      const ModelParameters& parameters) {
  return std::make_unique<LlamaBackboneTrace>(ops, shape, parameters);
}

}  // namespace hpo
