// Tested by tests/worker/trainer/memory_trace_test.cc.
#include "memory/families/backbone_trace.h"

#include <algorithm>

#include "common/models/model_modules.h"
#include "memory/families/bert_backbone_trace.h"
#include "memory/families/deberta_backbone_trace.h"
#include "memory/families/decoder_backbone_trace.h"
#include "memory/ops/attention_ops.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/recomputation_trace.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

// ---- All families ------------------------------------------------------------------------------

TracedTensor BackboneTrace::Forward(const TracedBatch& batch, bool training) {
  batch_ = batch.shape;
  training_ = training;
  device_.SetTraining(training);
  TracedContext context = ContextOf(batch);
  if (device_.in_autocast() && context.bias) {
    context.bias = device_.Allocate(context.bias.bytes() / kFloatBytes * kHalfBytes);
  }
  TracedTensor hidden = Embed(batch);
  const auto mark = [this] {
    marks_.push_back(
        {.event = device_.tracer().trace().events.size(), .node = device_.tracer().NextNode()});
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
    hidden = every > 0 ? RunRecomputed(device_, segment, std::move(inputs), Trains(first, count))
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
  attention.written_out = ops::WritesOutAttention(device_, attention);
  return attention;
}

// ---- Encoders ----------------------------------------------------------------------------------

EncoderTraceBase::EncoderTraceBase(TracedDevice& device, const ModelShape& shape,
                                   const ModelParameters& parameters)
    : BackboneTrace(device, shape, parameters),
      layers_(MakeEncoderLayers(parameters, shape)),
      activation_(*ActivationOf(shape.hidden_act)),
      dense_dropout_(EncoderLayerModulesOf(*ModelFamilyOf(shape.family)).attention_dropout
                         ? shape.hidden_dropout
                         : 0.0) {}

TracedStorage EncoderTraceBase::PaddingBias(const TracedBatch& batch) const {
  StepTracer& tracer = device().tracer();
  TracedStorage bias = tracer.Allocate(kFloatBytes * batch.Tokens());
  TracedStorage is_padding;
  {
    const ops::Number zero(device(), /*element_size=*/0);
    is_padding = tracer.Allocate(batch.Tokens(), MemoryClass::kTemporary);
  }
  return bias;
}

TracedTensor EncoderTraceBase::SelfAttention(int64_t index, const TracedTensor& hidden,
                                             const TracedContext& context) {
  const AttentionShape shape = Attention();
  if (!batch().packed.empty()) {
    const TracedTensor value = Linear(hidden, layer(index).value);
    const TracedTensor key = Linear(hidden, layer(index).key);
    const TracedTensor query = Linear(hidden, layer(index).query);
    return ops::PackedAttention(device(), query, key, value, shape, batch().packed);
  }
  TracedTensor attended;
  {
    // The compiler evaluates arguments from the last to the first.
    using Role = ops::AttentionRole;
    const TracedTensor value =
        ops::SplitHeads(device(), Linear(hidden, layer(index).value), shape, Role::kValue);
    const TracedTensor key = ops::ProjectKeys(device(), hidden, layer(index).key, shape);
    const TracedTensor query =
        ops::SplitHeads(device(), Linear(hidden, layer(index).query), shape, Role::kQuery);
    attended = ops::Attention(device(), query, key, value, shape, context.bias);
  }
  // Heads side by side again. Fused kernels write in that layout; a product does not.
  return ops::Relayout(device(), attended, shape.written_out && shape.heads > 1,
                       /*copies_back=*/false);
}

TracedTensor EncoderTraceBase::Close(const TracedLinear& dense, const TracedNorm& norm,
                                     double dropout, const TracedTensor& input,
                                     const TracedTensor& residual) const {
  return ops::LayerNorm(device(), Add(Dropout(Linear(input, dense), dropout), residual), norm);
}

TracedTensor EncoderTraceBase::RunLayer(int64_t index, const TracedTensor& hidden,
                                        const TracedContext& context) {
  const EncoderLayerParameters& modules = layer(index);
  const TracedTensor attended =
      Close(modules.attention_dense, modules.attention_norm, dense_dropout_,
            SelfAttention(index, hidden, context), hidden);
  return Close(modules.output_dense, modules.output_norm, shape().hidden_dropout,
               Activate(Linear(attended, modules.intermediate), activation_), attended);
}

void KeepConstants(TracedDevice& device, const ModelShape& shape) {
  int64_t bytes = 0;
  switch (*ModelFamilyOf(shape.family)) {
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      bytes = kFloatBytes * (shape.HeadSize() / 2);  // frequencies
      break;
    case ModelFamily::kDeberta:  // a row for each distance
      if (shape.relative.span > 0) bytes = kIndexBytes * (2 * shape.max_positions - 1);
      break;
    default:
      break;
  }
  if (bytes > 0) device.tracer().Keep(device.Allocate(bytes));
}

std::unique_ptr<BackboneTrace> MakeBackboneTrace(TracedDevice& device, const ModelShape& shape,
                                                 const ModelParameters& parameters) {
  switch (*ModelFamilyOf(shape.family)) {
    case ModelFamily::kBert:
    case ModelFamily::kRoberta:
    case ModelFamily::kElectra:
    case ModelFamily::kDistilBert:
      return MakeBertBackboneTrace(device, shape, parameters);
    case ModelFamily::kDeberta:
      return MakeDebertaBackboneTrace(device, shape, parameters);
    case ModelFamily::kGpt2:
      return MakeGpt2BackboneTrace(device, shape, parameters);
    case ModelFamily::kLlama:
    case ModelFamily::kQwen2:
      break;
  }
  return MakeLlamaBackboneTrace(device, shape, parameters);
}

}  // namespace hpo::memory
