#include "common/memory/bert_trace.h"

#include <algorithm>
#include <utility>

#include "common/memory/recomputation_trace.h"
#include "common/memory/step_tracer.h"
#include "common/memory/trace_ops.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;  // bytes of an int64
constexpr int64_t kFloat = 4;

// ---- Models: worker/trainer/models -------------------------------------------------------------

// Dense layer, dropout, residual sum, LayerNorm.
struct Output {
  TracedLinear dense;
  TracedNorm norm;
};

struct Layer {
  TracedLinear query;
  TracedLinear key;
  TracedLinear value;
  Output attention_output;
  TracedLinear intermediate;
  Output output;
};

struct Batch {
  BatchShape shape;
  TracedStorage ids;
  TracedStorage mask;
  TracedStorage types;
  TracedStorage labels;
};

// As AdamW groups them: weights decay, biases and LayerNorm's parameters do not.
struct ParameterGroups {
  std::vector<TracedParameter> decaying;
  std::vector<TracedParameter> others;

  void Add(const TracedLinear& layer) {
    decaying.push_back(layer.weight);
    others.push_back(*layer.bias);
  }
  void Add(const TracedNorm& norm) {
    others.push_back(norm.weight);
    others.push_back(*norm.bias);
  }
};

class Classifier {
 public:
  Classifier(TraceOps& ops, const BertClassifierShape& shape) : ops_(ops), shape_(shape) {
    const int64_t hidden = shape.model.hidden_size;
    words_ = ops.Parameter(shape.model.vocab_size, hidden);
    positions_ = ops.Parameter(shape.model.max_positions, hidden);
    types_ = ops.Parameter(shape.model.type_vocab_size, hidden);
    norm_ = ops.MakeNorm(hidden);
    for (int64_t i = 0; i < shape.model.num_layers; ++i) layers_.push_back(MakeLayer());
    pooler_ = ops.MakeLinear(hidden, hidden);
    int64_t width = hidden;
    for (const int64_t size : shape.head_sizes) {
      head_hidden_.push_back(ops.MakeLinear(width, size));
      width = size;
    }
    head_ = ops.MakeLinear(width, shape.num_labels);
  }

  // Each in the order in which torch lists parameters: a module's own before its children's.
  ParameterGroups Groups() const {
    ParameterGroups groups{.decaying = {words_, positions_, types_}, .others = {}};
    groups.Add(norm_);
    for (const Layer& layer : layers_) {
      for (const TracedLinear& projection : {layer.query, layer.key, layer.value}) {
        groups.Add(projection);
      }
      groups.Add(layer.attention_output.dense);
      groups.Add(layer.attention_output.norm);
      groups.Add(layer.intermediate);
      groups.Add(layer.output.dense);
      groups.Add(layer.output.norm);
    }
    groups.Add(pooler_);
    groups.Add(head_);
    for (const TracedLinear& layer : head_hidden_) groups.Add(layer);
    return groups;
  }

  // Logits.
  TracedTensor Forward(const Batch& batch, bool training) const {
    if (shape_.execution.precision == Precision::kFloat32) {
      return ClassifyPooled(Encode(batch, training), training);
    }
    ops_.EnterAutocast(/*caches_weights=*/false);
    const TracedTensor logits = ClassifyPooled(Encode(batch, training), training);
    ops_.LeaveAutocast();
    return ops_.Cast(logits, kFloat);
  }

 private:
  Layer MakeLayer() const {
    const int64_t hidden = shape_.model.hidden_size;
    const int64_t intermediate = shape_.model.intermediate_size;
    Layer layer;
    layer.query = ops_.MakeLinear(hidden, hidden);
    layer.key = ops_.MakeLinear(hidden, hidden);
    layer.value = ops_.MakeLinear(hidden, hidden);
    layer.attention_output = MakeOutput(hidden);
    layer.intermediate = ops_.MakeLinear(hidden, intermediate);
    layer.output = MakeOutput(intermediate);
    return layer;
  }

  Output MakeOutput(int64_t in_features) const {
    Output output;
    output.dense = ops_.MakeLinear(in_features, shape_.model.hidden_size);
    output.norm = ops_.MakeNorm(shape_.model.hidden_size);
    return output;
  }

  TracedTensor Encode(const Batch& batch, bool training) const {
    const TracedStorage bias = AttentionBias(batch.shape);
    TracedTensor hidden = Embed(batch, training);
    const auto num_layers = static_cast<int64_t>(layers_.size());
    const int64_t every = training ? shape_.execution.checkpoint_every : 0;
    for (int64_t first = 0; first < num_layers;) {
      const int64_t count = std::min(std::max<int64_t>(every, 1), num_layers - first);
      const auto segment = [this, first, count, bias, shape = batch.shape,
                            training](const TracedTensor& input) {
        return RunLayers(first, count, input, bias, shape, training);
      };
      hidden = every > 0 ? RunRecomputed(ops_, segment, hidden, /*has_parameters=*/true)
                         : segment(hidden);
      first += count;
    }
    return ops_.Activate(ops_.Linear(ops_.Select(hidden, batch.shape.tokens), pooler_),
                         Activation::kTanh);
  }

  TracedStorage AttentionBias(const BatchShape& shape) const {
    StepTracer& tracer = ops_.tracer();
    const int64_t positions = shape.rows * shape.tokens;
    TracedStorage bias = tracer.Allocate(kFloat * positions);
    TracedStorage is_padding;
    {
      const TraceOps::Number zero(ops_, /*element_size=*/0);
      is_padding = tracer.Allocate(positions, MemoryClass::kTemporary);
    }
    return bias;
  }

  TracedTensor Embed(const Batch& batch, bool training) const {
    const ModelShape& model = shape_.model;
    const int64_t tokens = batch.shape.rows * batch.shape.tokens;
    const TracedStorage positions = ops_.tracer().Allocate(kIndex * batch.shape.tokens);
    TracedTensor sum = ops_.Embedding(batch.ids, tokens, words_, model.hidden_size);
    sum = ops_.Add(sum, ops_.Embedding(batch.types, tokens, types_, model.hidden_size));
    sum = ops_.AddRepeated(
        sum, ops_.Embedding(positions, batch.shape.tokens, positions_, model.hidden_size));
    return Dropout(ops_.LayerNorm(sum, norm_), model.hidden_dropout, training);
  }

  TracedTensor RunLayers(int64_t first, int64_t count, TracedTensor hidden,
                         const TracedStorage& bias, const BatchShape& batch, bool training) const {
    for (int64_t i = first; i < first + count; ++i) {
      hidden = RunLayer(layers_[static_cast<size_t>(i)], hidden, bias, batch, training);
    }
    return hidden;
  }

  TracedTensor RunLayer(const Layer& layer, const TracedTensor& hidden, const TracedStorage& bias,
                        const BatchShape& batch, bool training) const {
    const TracedTensor attended =
        RunOutput(layer.attention_output, SelfAttention(layer, hidden, bias, batch, training),
                  hidden, training);
    return RunOutput(layer.output,
                     ops_.Activate(ops_.Linear(attended, layer.intermediate), Activation::kGelu),
                     attended, training);
  }

  TracedTensor SelfAttention(const Layer& layer, const TracedTensor& hidden,
                             const TracedStorage& bias, const BatchShape& batch,
                             bool training) const {
    const ModelShape& model = shape_.model;
    const AttentionShape shape{.batch = batch.rows,
                               .tokens = batch.tokens,
                               .heads = model.num_heads,
                               .head_size = model.hidden_size / model.num_heads,
                               .dropout = training ? model.attention_dropout : 0.0};
    TracedTensor context;
    {
      // The compiler evaluates arguments from the last to the first.
      using Role = TraceOps::AttentionRole;
      const TracedTensor value =
          ops_.SplitHeads(ops_.Linear(hidden, layer.value), shape, Role::kValue);
      const TracedTensor key = ops_.SplitHeads(ops_.Linear(hidden, layer.key), shape, Role::kKey);
      const TracedTensor query =
          ops_.SplitHeads(ops_.Linear(hidden, layer.query), shape, Role::kQuery);
      const TracedStorage typed_bias =
          query.element_size == kFloat
              ? bias
              : ops_.tracer().Allocate(bias.bytes() / kFloat * query.element_size);
      context = ops_.Attention(query, key, value, shape, typed_bias);
    }
    // Heads side by side again. Fused kernels write in that layout; a product does not.
    const bool copies = ops_.traits().cpu && shape.dropout > 0.0 && shape.heads > 1;
    return ops_.Relayout(context, copies, /*copies_back=*/false);
  }

  TracedTensor RunOutput(const Output& output, const TracedTensor& input,
                         const TracedTensor& residual, bool training) const {
    return ops_.LayerNorm(
        ops_.Add(Dropout(ops_.Linear(input, output.dense), shape_.model.hidden_dropout, training),
                 residual),
        output.norm);
  }

  TracedTensor ClassifyPooled(const TracedTensor& pooled, bool training) const {
    TracedTensor features = Dropout(pooled, shape_.head_dropout, training);
    for (const TracedLinear& layer : head_hidden_) {
      features = Dropout(ops_.Activate(ops_.Linear(features, layer), Activation::kGelu),
                         shape_.head_dropout, training);
    }
    return ops_.Linear(features, head_);
  }

  TracedTensor Dropout(const TracedTensor& input, double probability, bool training) const {
    return ops_.Dropout(input, training ? probability : 0.0);
  }

  TraceOps& ops_;
  const BertClassifierShape& shape_;
  TracedParameter words_;
  TracedParameter positions_;
  TracedParameter types_;
  TracedNorm norm_;
  std::vector<Layer> layers_;
  TracedLinear pooler_;
  std::vector<TracedLinear> head_hidden_;
  TracedLinear head_;
};

// ---- Training: worker/trainer/training ---------------------------------------------------------

class TracedTrial {
 public:
  TracedTrial(TraceOps& ops, const BertClassifierShape& shape)
      : tracer_(ops.tracer()), shape_(shape), ops_(ops), model_(ops, shape) {
    groups_ = model_.Groups();
  }

  void AllocateStates() {
    std::vector<ParameterExtent> extents;
    for (const auto* group : {&groups_.decaying, &groups_.others}) {
      for (const TracedParameter& parameter : *group) {
        extents.push_back(
            {.rows = parameter.elements / parameter.columns, .columns = parameter.columns});
      }
    }
    for (const int64_t bytes : OptimizerBytes(shape_.optimizer, extents)) {
      tracer_.Keep(tracer_.Allocate(bytes, MemoryClass::kOptimizer));
    }
  }

  void ComputeGradients(const std::vector<BatchShape>& parts) {
    const TracedStorage loss = tracer_.Allocate(kFloat);
    for (const BatchShape& part : parts) {
      tracer_.EnterPhase("forward");
      const Batch batch = ToDevice(part);
      const TracedTensor part_loss =
          ops_.Scale(SumOfRowLosses(model_.Forward(batch, /*training=*/true), part));
      tracer_.EnterPhase("backward");
      tracer_.Backward(part_loss);
    }
  }

  void ClipGradients(bool scales) {
    const size_t num_gradients = groups_.decaying.size() + groups_.others.size();
    {
      std::vector<TracedStorage> norms;
      for (size_t i = 0; i < num_gradients; ++i) norms.push_back(Temporary(kFloat));
      const TracedStorage stacked = Temporary(kFloat * static_cast<int64_t>(num_gradients));
      const TracedStorage norm = Temporary(kFloat);
    }
    if (!scales) return;
    for (size_t i = 0; i < num_gradients; ++i) const TraceOps::Number factor(ops_);
  }

  void ClearGradients() {
    for (const auto* group : {&groups_.decaying, &groups_.others}) {
      for (const TracedParameter& parameter : *group) tracer_.ClearGradient(parameter);
    }
  }

  void Evaluate(const std::vector<BatchShape>& batches) {
    const StepTracer::NoGrad no_grad(tracer_);
    for (const BatchShape& shape : batches) {
      const Batch batch = ToDevice(shape);
      const TracedTensor logits = model_.Forward(batch, /*training=*/false);
      SumOfRowLosses(logits, shape);
      shape_.multi_label ? FindPositive(logits) : tracer_.Touch(kIndex * shape.rows);
    }
  }

 private:
  TracedStorage Temporary(int64_t bytes) {
    return tracer_.Allocate(bytes, MemoryClass::kTemporary);
  }

  Batch ToDevice(const BatchShape& shape) {
    const int64_t positions = kIndex * shape.rows * shape.tokens;
    const int64_t labels = shape_.multi_label ? kFloat * shape_.num_labels : kIndex;
    Batch batch{.shape = shape};
    batch.ids = tracer_.Allocate(positions);
    batch.mask = tracer_.Allocate(positions);
    batch.types = tracer_.Allocate(positions);
    batch.labels = tracer_.Allocate(labels * shape.rows);
    return batch;
  }

  TracedTensor SumOfRowLosses(const TracedTensor& logits, const BatchShape& batch) {
    if (!shape_.multi_label) return ops_.CrossEntropy(logits, batch.rows, shape_.num_labels);
    const TracedTensor sum = ops_.BinaryCrossEntropy(logits);
    return ops_.Scale(sum);
  }

  // Which logits are larger than a number; on a CPU it becomes an integer, then a float.
  void FindPositive(const TracedTensor& logits) {
    TracedStorage number;
    TracedStorage converted;
    if (ops_.traits().cpu) {
      number = Temporary(kIndex);
      converted = Temporary(kFloat);
    }
    const TracedStorage positive = Temporary(logits.elements);
    number.Reset();
    converted.Reset();
  }

  StepTracer& tracer_;
  const BertClassifierShape& shape_;
  TraceOps& ops_;
  Classifier model_;
  ParameterGroups groups_;
};

}  // namespace

AllocationTrace TraceBertTrial(const BertClassifierShape& shape, const TrialPasses& passes,
                               const KernelTraits& traits) {
  StepTracer tracer;
  TraceOps ops(tracer, traits);
  ops.WarmUp();
  tracer.EnterPhase("model");
  TracedTrial trial(ops, shape);
  tracer.EnterPhase("optimizer states");
  trial.AllocateStates();
  for (const MeasuredSteps& stretch : passes.stretches) {
    for (const std::vector<BatchShape>& parts : stretch.steps) {
      trial.ComputeGradients(parts);
      tracer.EnterPhase("gradient clipping");
      // A loss scale is divided out.
      trial.ClipGradients(passes.scales_gradients ||
                          shape.execution.precision == Precision::kFloat16);
      tracer.EnterPhase("optimizer step");
      trial.ClearGradients();
    }
    tracer.EnterPhase("evaluation");
    trial.Evaluate(stretch.evaluation);
  }
  return tracer.trace();
}

}  // namespace hpo
