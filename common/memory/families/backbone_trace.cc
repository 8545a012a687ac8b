#include "common/memory/families/backbone_trace.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/memory/families/trained_families.h"
#include "common/memory/trace/recomputation_trace.h"
#include "common/models/model_modules.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kHalf = 2;
constexpr int64_t kIndex = 8;

}  // namespace

// ---- All families ------------------------------------------------------------------------------

TracedTensor BackboneTrace::Forward(const TracedBatch& batch, bool training) {
  batch_ = batch.shape;
  training_ = training;
  ops_.SetTraining(training);
  TracedContext context = ContextOf(batch);
  if (ops_.in_autocast() && context.bias) {
    context.bias = ops_.tracer().Allocate(context.bias.bytes() / kFloat * kHalf);
  }
  TracedTensor hidden = Embed(batch);
  const auto mark = [this] {
    marks_.push_back(
        {.event = ops_.tracer().trace().events.size(), .node = ops_.tracer().NextNode()});
  };
  marks_.clear();
  const int64_t every = training ? execution_.checkpoint_every : 0;
  for (int64_t first = 0; first < shape_.num_layers;) {
    const int64_t count = std::min(std::max<int64_t>(every, 1), shape_.num_layers - first);
    for (int64_t i = 0; i < count; ++i) mark();
    const auto segment = [this, first, count,
                          context](const std::vector<TracedTensor>& inputs) mutable {
      TracedContext own = context;
      if (inputs.size() > 1) own.relative = inputs[1];
      return RunLayers(first, count, inputs.front(), own);
    };
    std::vector<TracedTensor> inputs = {hidden};
    if (context.relative.storage) inputs.push_back(context.relative);
    hidden = every > 0 ? RunRecomputed(ops_, segment, std::move(inputs), Trains(first, count))
                       : RunLayers(first, count, hidden, context);
    first += count;
  }
  mark();
  hidden = Finish(hidden);
  return hidden;
}

bool BackboneTrace::Trains(int64_t first, int64_t count) const {
  for (int64_t i = first; i < first + count; ++i) {
    if (parameters_.Trains(i)) return true;
  }
  return false;
}

TracedTensor BackboneTrace::RunLayers(int64_t first, int64_t count, TracedTensor hidden,
                                      const TracedContext& context) {
  for (int64_t i = first; i < first + count; ++i) hidden = RunLayer(i, hidden, context);
  return hidden;
}

AttentionShape BackboneTrace::Attention() const {
  const double dropout = training_ ? shape_.attention_dropout : 0.0;
  AttentionShape attention{.batch = batch_.rows,
                           .tokens = batch_.tokens,
                           .heads = shape_.num_heads,
                           .head_size = shape_.HeadSize(),
                           .dropout = dropout};
  attention.written_out = ops_.WritesOutAttention(attention);
  return attention;
}

// ---- Encoders ----------------------------------------------------------------------------------

EncoderTraceBase::EncoderTraceBase(TraceOps& ops, const ModelShape& shape,
                                   const ModelParameters& parameters)
    : BackboneTrace(ops, shape, parameters),
      layers_(EncoderLayers(parameters, shape)),
      activation_(*ActivationOf(shape.hidden_act)),
      dense_dropout_(EncoderLayerModulesOf(*ModelFamilyOf(shape.family)).attention_dropout
                         ? shape.hidden_dropout
                         : 0.0) {}

TracedStorage EncoderTraceBase::PaddingBias(const TracedBatch& batch) const {
  StepTracer& tracer = ops().tracer();
  TracedStorage bias = tracer.Allocate(kFloat * batch.Tokens());
  TracedStorage is_padding;
  {
    const TraceOps::Number zero(ops(), /*element_size=*/0);
    is_padding = tracer.Allocate(batch.Tokens(), MemoryClass::kTemporary);
  }
  return bias;
}

TracedTensor EncoderTraceBase::SelfAttention(int64_t index, const TracedTensor& hidden,
                                             const TracedContext& context) {
  const AttentionShape shape = Attention();
  if (!batch().packed.empty()) {
    const TracedTensor value = ops().Linear(hidden, layer(index).value);
    const TracedTensor key = ops().Linear(hidden, layer(index).key);
    const TracedTensor query = ops().Linear(hidden, layer(index).query);
    return ops().PackedAttention(query, key, value, shape, batch().packed);
  }
  TracedTensor attended;
  {
    // The compiler evaluates arguments from the last to the first.
    using Role = TraceOps::AttentionRole;
    const TracedTensor value =
        ops().SplitHeads(ops().Linear(hidden, layer(index).value), shape, Role::kValue);
    const TracedTensor key = ops().ProjectKeys(hidden, layer(index).key, shape);
    const TracedTensor query =
        ops().SplitHeads(ops().Linear(hidden, layer(index).query), shape, Role::kQuery);
    attended = ops().Attention(query, key, value, shape, context.bias);
  }
  // Heads side by side again. Fused kernels write in that layout; a product does not.
  return ops().Relayout(attended, shape.written_out && shape.heads > 1, /*copies_back=*/false);
}

TracedTensor EncoderTraceBase::Close(const TracedLinear& dense, const TracedNorm& norm,
                                     double dropout, const TracedTensor& input,
                                     const TracedTensor& residual) const {
  return ops().LayerNorm(ops().Add(Dropout(ops().Linear(input, dense), dropout), residual), norm);
}

TracedTensor EncoderTraceBase::RunLayer(int64_t index, const TracedTensor& hidden,
                                        const TracedContext& context) {
  const EncoderLayerParameters& modules = layer(index);
  const TracedTensor attended =
      Close(modules.attention_dense, modules.attention_norm, dense_dropout_,
            SelfAttention(index, hidden, context), hidden);
  return Close(modules.output_dense, modules.output_norm, shape().hidden_dropout,
               ops().Activate(ops().Linear(attended, modules.intermediate), activation_), attended);
}

void KeepConstants(TraceOps& ops, const ModelShape& shape) {
  int64_t bytes = 0;
  switch (*ModelFamilyOf(shape.family)) {
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      bytes = kFloat * (shape.HeadSize() / 2);  // frequencies
      break;
    case ModelFamily::kDeberta:  // a row for each distance
      if (shape.relative.span > 0) bytes = kIndex * (2 * shape.max_positions - 1);
      break;
    default:
      break;
  }
  if (bytes > 0) ops.tracer().Keep(ops.tracer().Allocate(bytes));
}

std::unique_ptr<BackboneTrace> MakeBackboneTrace(TraceOps& ops, const ModelShape& shape,
                                                 const ModelParameters& parameters) {
  switch (*ModelFamilyOf(shape.family)) {
    case ModelFamily::kBert:
    case ModelFamily::kRoberta:
    case ModelFamily::kElectra:
    case ModelFamily::kDistilBert:
      return MakeBertBackboneTrace(ops, shape, parameters);
    case ModelFamily::kDeberta:
      return MakeDebertaBackboneTrace(ops, shape, parameters);
    case ModelFamily::kGpt2:
      return MakeGpt2BackboneTrace(ops, shape, parameters);
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      break;
  }
  return MakeLlamaBackboneTrace(ops, shape, parameters);
}

}  // namespace hpo
