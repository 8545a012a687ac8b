// Tested by tests/memory/described_step_test.cc.
#include "memory/offline/described_encoder.h"

#include <utility>

#include "memory/ops/attention_ops.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/recomputation_trace.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

// ---- Parameters --------------------------------------------------------------------------------

DescribedEncoder::DescribedEncoder(TracedDevice& device, const StepDescription& step,
                                   const EncoderLayers& layer, int64_t width)
    : device_(device), step_(step), described_(layer), width_(width) {
  layers_.resize(static_cast<size_t>(layer.count));
  for (Layer& made : layers_) Make(made);
}

void DescribedEncoder::Make(Layer& layer) {
  // A module's own parameters come to the device after its children's, and are before them in
  // parameters().
  layer.out_projection = ops::MakeLinear(device_, width_, width_);
  layer.in_projection = ops::MakeLinear(device_, width_, 3 * width_);
  layer.linear1 = ops::MakeLinear(device_, width_, described_.feed_forward);
  layer.linear2 = ops::MakeLinear(device_, described_.feed_forward, width_);
  layer.norm1 = ops::MakeNorm(device_, width_);
  layer.norm2 = ops::MakeNorm(device_, width_);
  for (const TracedLinear* linear :
       {&layer.in_projection, &layer.out_projection, &layer.linear1, &layer.linear2}) {
    parameters_.push_back(linear->weight);
    parameters_.push_back(*linear->bias);
  }
  for (const TracedNorm* norm : {&layer.norm1, &layer.norm2}) {
    parameters_.push_back(norm->weight);
    parameters_.push_back(*norm->bias);
  }
}

// ---- Training ----------------------------------------------------------------------------------

TracedTensor DescribedEncoder::Run(const TracedTensor& input, const Pass& pass) {
  rows_ = pass.rows;
  tokens_ = input.elements / (rows_ * width_);
  training_ = pass.training;
  TracedTensor hidden = input;
  for (const Layer& layer : layers_) {
    const auto run = [this, &layer, x = hidden] { return RunLayer(layer, x); };
    hidden = described_.checkpointing ? RunCheckpointed(device_, run) : run();
  }
  return hidden;
}

// Here and below: a value that a function takes lives as Python's variable does, until it is
// assigned. It must be the last one assigned, for it outlives the call.
TracedTensor DescribedEncoder::RunLayer(const Layer& layer, TracedTensor x) {
  if (FusesLayers()) return RunFused(layer, x);
  if (described_.norm_first) {
    TracedNorm norm = layer.norm1;
    norm.copies_gradient = SwapsTokens();
    x = ops::Add(device_, x, SelfAttention(layer, ops::LayerNorm(device_, x, norm)));
    return ops::Add(device_, x, FeedForward(layer, ops::LayerNorm(device_, x, layer.norm2)));
  }
  x = AddNormed(x, SelfAttention(layer, x), layer.norm1);
  return AddNormed(x, FeedForward(layer, x), layer.norm2);
}

TracedTensor DescribedEncoder::AddNormed(const TracedTensor& x, TracedTensor change,
                                         const TracedNorm& norm) {
  change = ops::Add(device_, x, change);
  change = ops::LayerNorm(device_, change, norm);
  return change;
}

AttentionShape DescribedEncoder::Shape() const {
  return {.batch = rows_,
          .tokens = tokens_,
          .heads = described_.heads,
          .head_size = width_ / described_.heads,
          .dropout = training_ ? described_.attention_dropout : 0.0};
}

// torch.nn.MultiheadAttention: between the projections tokens come before rows.
TracedTensor DescribedEncoder::SelfAttention(const Layer& layer, TracedTensor x) {
  if (FusesAttention()) return FusedAttention(layer, x);
  const bool swaps = SwapsTokens();
  AttentionShape shape = Shape();
  shape.copies_gradient = swaps;
  TracedTensor attended;
  {
    TracedTensor packed = swaps ? ops::LinearOfTransposed(device_, x, layer.in_projection)
                                : ops::Linear(device_, x, layer.in_projection);
    packed = ops::Copy(device_, packed, /*copies_back=*/true);
    const AttentionInputs inputs = Split(packed);
    packed = {};
    attended = ops::Attention(device_, inputs[0], inputs[1], inputs[2], shape);
    attended = ops::Relayout(device_, attended, CopiesContext(), /*copies_back=*/false);
    attended = ops::Linear(device_, attended, layer.out_projection);
    attended = ops::Relayout(device_, attended, /*copies=*/false, /*copies_back=*/swaps);
  }
  x = std::move(attended);
  x = Dropout(x);
  return x;
}

// To tokens before rows. Flash attention's result is laid out as its query is.
bool DescribedEncoder::CopiesContext() const {
  switch (step_.attention) {
    case AttentionKernel::kFlash:
    case AttentionKernel::kCudnn:
      return false;
    case AttentionKernel::kEfficient:
      return SwapsTokens();
    case AttentionKernel::kMath:
      return tokens_ > 1 && rows_ * described_.heads > 1;
  }
  return false;
}

// Views by heads, then by rows and heads. The gradients that the kernels make are copied where
// they are laid out otherwise.
DescribedEncoder::AttentionInputs DescribedEncoder::Split(const TracedTensor& packed) {
  AttentionInputs inputs;
  for (TracedTensor& input : inputs) input = ops::Select(device_, packed, 3);
  const bool by_heads = described_.heads > 1 && tokens_ > 1;
  const bool math = by_heads && step_.attention == AttentionKernel::kMath;
  const bool efficient = by_heads && rows_ > 1 && step_.attention == AttentionKernel::kEfficient;
  const std::array<bool, 3> copies = {efficient || math, efficient, efficient || math};
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = ops::Relayout(device_, inputs[i], /*copies=*/false, copies[i]);
  }
  for (TracedTensor& input : inputs) {
    input = ops::Relayout(device_, input, /*copies=*/false, efficient);
  }
  return inputs;
}

TracedTensor DescribedEncoder::FeedForward(const Layer& layer, TracedTensor x) {
  TracedTensor inner = ops::Linear(device_, x, layer.linear1);
  inner = ops::Activate(device_, inner, described_.activation);
  inner = Dropout(inner);
  inner = ops::Linear(device_, inner, layer.linear2);
  x = std::move(inner);
  x = Dropout(x);
  return x;
}

TracedTensor DescribedEncoder::Dropout(const TracedTensor& x) {
  return ops::Dropout(device_, x, training_ ? described_.dropout : 0.0);
}

// ---- Evaluation --------------------------------------------------------------------------------

// torch._native_multi_head_attention.
bool DescribedEncoder::FusesAttention() const {
  return !training_ && step_.precision != StepPrecision::kAutocast && described_.heads % 2 == 0;
}

// torch._transformer_encoder_layer_fwd.
bool DescribedEncoder::FusesLayers() const {
  return FusesAttention() &&
         (described_.activation == Activation::kRelu || described_.activation == Activation::kGelu);
}

// Residual sums and activations are in place.
TracedTensor DescribedEncoder::RunFused(const Layer& layer, TracedTensor x) {
  if (described_.norm_first) {
    x = FusedAttention(layer, ops::LayerNorm(device_, x, layer.norm1));
    const TracedTensor normed = ops::LayerNorm(device_, x, layer.norm2);
    return ops::Linear(device_, ops::Linear(device_, normed, layer.linear1), layer.linear2);
  }
  x = FusedAttention(layer, x);
  x = ops::LayerNorm(device_, x, layer.norm1);
  TracedTensor inner = ops::Linear(device_, x, layer.linear1);
  inner = ops::Linear(device_, inner, layer.linear2);
  return ops::LayerNorm(device_, inner, layer.norm2);
}

TracedTensor DescribedEncoder::FusedAttention(const Layer& layer, const TracedTensor& x) {
  const TracedTensor packed = ops::Linear(device_, x, layer.in_projection);
  const TracedTensor third = ops::Select(device_, packed, 3);
  const TracedTensor context = ops::Attention(device_, third, third, third, Shape());
  return ops::Linear(device_, context, layer.out_projection);
}

}  // namespace hpo::memory
