#include "common/memory/described_step_trace.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/memory/model_trace.h"
#include "common/memory/recomputation_trace.h"
#include "common/status.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;
constexpr Bytes kTensorUnit{512};
constexpr double kFragileSpread = 0.03;
// From the third part on, every part of an accumulated batch allocates what the second did.
constexpr int64_t kPartsThatDiffer = 3;

int64_t ElementSize(StepPrecision precision) { return precision == StepPrecision::kHalf ? 2 : 4; }

// ---- Model -------------------------------------------------------------------------------------

struct EncoderParameters {
  TracedLinear in_projection, out_projection, linear1, linear2;
  TracedNorm norm1, norm2;
};

// A described layer with its parameters; the members that its type needs are set.
struct BuiltLayer {
  DescribedLayer description;
  int64_t width = 0;  // of its input
  TracedParameter table;
  TracedLinear linear;
  TracedNorm norm;
  std::vector<EncoderParameters> encoder;
};

class Model {
 public:
  Model(TraceOps& ops, const StepDescription& step) : ops_(ops), step_(step) {
    for (const DescribedLayer& layer : step.layers) {
      layers_.push_back(std::visit([this](const auto& l) { return Build(l); }, layer));
      layers_.back().description = layer;
    }
  }

  // Forward to the loss.
  TracedTensor Loss(const TracedStorage& ids) {
    if (step_.precision == StepPrecision::kAutocast) ops_.EnterAutocast();
    TracedTensor x;
    int64_t rows = step_.batch * step_.length;
    for (const BuiltLayer& layer : layers_) {
      x = std::visit([&](const auto& l) { return Run(l, layer, x, ids); }, layer.description);
      if (std::holds_alternative<PoolingLayer>(layer.description)) rows = step_.batch;
    }
    TracedTensor loss = ops_.CrossEntropy(x, rows, x.elements / rows);
    ops_.LeaveAutocast();
    return loss;
  }

 private:
  // ---- Parameters, in the order of the modules ----

  BuiltLayer Build(const EmbeddingLayer& layer) {
    width_ = layer.width;
    return {.width = width_, .table = ops_.Parameter(layer.rows * layer.width)};
  }
  BuiltLayer Build(const PositionLayer& layer) {
    return {.width = width_, .table = ops_.Parameter(layer.rows * width_)};
  }
  BuiltLayer Build(const EncoderLayers& layer) {
    BuiltLayer built{.width = width_};
    for (int64_t i = 0; i < layer.count; ++i) {
      EncoderParameters p;
      p.in_projection = ops_.MakeLinear(width_, 3 * width_);
      p.out_projection = ops_.MakeLinear(width_, width_);
      p.linear1 = ops_.MakeLinear(width_, layer.feed_forward);
      p.linear2 = ops_.MakeLinear(layer.feed_forward, width_);
      p.norm1 = ops_.MakeNorm(width_);
      p.norm2 = ops_.MakeNorm(width_);
      built.encoder.push_back(p);
    }
    return built;
  }
  BuiltLayer Build(const LinearLayer& layer) {
    BuiltLayer built{.width = width_, .linear = ops_.MakeLinear(width_, layer.out, layer.bias)};
    width_ = layer.out;
    return built;
  }
  BuiltLayer Build(const NormLayer&) { return {.width = width_, .norm = ops_.MakeNorm(width_)}; }
  template <typename Layer>
  BuiltLayer Build(const Layer&) {
    return {.width = width_};
  }

  // ---- Forward ----

  TracedTensor Run(const EmbeddingLayer&, const BuiltLayer& built, const TracedTensor&,
                   const TracedStorage& ids) {
    return ops_.Embedding(ids, step_.batch * step_.length, built.table, built.width);
  }
  TracedTensor Run(const PositionLayer&, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    return ops_.AddBroadcast(x, built.table);
  }
  TracedTensor Run(const EncoderLayers& layer, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    TracedTensor hidden = x;
    for (const EncoderParameters& parameters : built.encoder) {
      const auto run = [this, &layer, &parameters, input = hidden] {
        return EncoderLayer(layer, parameters, input);
      };
      hidden = layer.checkpointing ? RunCheckpointed(ops_, run) : run();
    }
    return hidden;
  }
  TracedTensor Run(const LinearLayer&, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    return ops_.Linear(x, built.linear);
  }
  TracedTensor Run(const ActivationLayer& layer, const BuiltLayer&, const TracedTensor& x,
                   const TracedStorage&) {
    return ops_.Activate(x, layer.function);
  }
  TracedTensor Run(const DropoutLayer& layer, const BuiltLayer&, const TracedTensor& x,
                   const TracedStorage&) {
    return ops_.Dropout(x, layer.probability);
  }
  TracedTensor Run(const NormLayer&, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    return ops_.LayerNorm(x, built.norm);
  }
  TracedTensor Run(const PoolingLayer& layer, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    if (layer.kind == PoolingLayer::Kind::kMean) return ops_.Mean(x, step_.batch * built.width);
    return ops_.Select(x, step_.length);
  }

  TracedTensor EncoderLayer(const EncoderLayers& layer, const EncoderParameters& p,
                            const TracedTensor& x) {
    if (layer.norm_first) {
      const TracedTensor attended =
          ops_.Add(x, SelfAttention(layer, p, ops_.LayerNorm(x, p.norm1)));
      return ops_.Add(attended, FeedForward(layer, p, ops_.LayerNorm(attended, p.norm2)));
    }
    const TracedTensor attended = ops_.LayerNorm(ops_.Add(x, SelfAttention(layer, p, x)), p.norm1);
    return ops_.LayerNorm(ops_.Add(attended, FeedForward(layer, p, attended)), p.norm2);
  }

  // torch.nn.MultiheadAttention with batch_first: copies the transposed input, the packed
  // projection and the context.
  TracedTensor SelfAttention(const EncoderLayers& layer, const EncoderParameters& p,
                             const TracedTensor& x) {
    const int64_t width = p.out_projection.in_features;
    const AttentionShape shape{.batch = step_.batch,
                               .tokens = step_.length,
                               .heads = layer.heads,
                               .head_size = width / layer.heads,
                               .dropout = layer.attention_dropout};
    TracedTensor packed = ops_.Linear(ops_.Copy(x), p.in_projection);
    packed = ops_.Copy(packed, /*copies_back=*/true);
    const TracedTensor query = ops_.Select(packed, 3);
    const TracedTensor key = ops_.Select(packed, 3);
    const TracedTensor value = ops_.Select(packed, 3);
    const TracedTensor context = ops_.Copy(ops_.Attention(query, key, value, shape));
    return ops_.Dropout(ops_.Linear(context, p.out_projection), layer.dropout);
  }

  TracedTensor FeedForward(const EncoderLayers& layer, const EncoderParameters& p,
                           const TracedTensor& x) {
    const TracedTensor inner =
        ops_.Dropout(ops_.Activate(ops_.Linear(x, p.linear1), layer.activation), layer.dropout);
    return ops_.Dropout(ops_.Linear(inner, p.linear2), layer.dropout);
  }

  TraceOps& ops_;
  const StepDescription& step_;
  std::vector<BuiltLayer> layers_;
  int64_t width_ = 0;
};

// A described model: known, or its layers.
class AnyModel {
 public:
  AnyModel(TraceOps& ops, const StepDescription& step) : ops_(ops), step_(step) {
    if (step.model.has_value()) {
      auto known = MakeModelTrace(ops, step.model->shape, step.model->head, step.model->techniques);
      HPO_CHECK(known.ok());  // ParseStepDescription refuses what has no trace
      known_ = *std::move(known);
    } else {
      layers_.emplace(ops, step);
    }
  }

  TracedTensor Loss(const TracedStorage& ids) {
    if (layers_.has_value()) return layers_->Loss(ids);
    if (step_.precision == StepPrecision::kAutocast) ops_.EnterAutocast();
    TracedTensor loss = known_->Loss({.rows = step_.batch, .tokens = step_.length}, ids);
    ops_.LeaveAutocast();
    return loss;
  }

 private:
  TraceOps& ops_;
  const StepDescription& step_;
  std::optional<Model> layers_;
  std::unique_ptr<ModelTrace> known_;
};

// ---- Optimizer ---------------------------------------------------------------------------------

class DescribedOptimizer {
 public:
  DescribedOptimizer(StepTracer& tracer, StepOptimizer kind) : tracer_(tracer), kind_(kind) {}

  void Clip() {
    // One norm for each gradient, stacked; the scaling is in place.
    TracedGradients norms;
    for (const TracedParameter& parameter : tracer_.parameters()) {
      if (parameter.trainable) norms.push_back(Temporary(4));
    }
    tracer_.Touch(4 * static_cast<int64_t>(norms.size()));
  }

  void Step() {
    switch (kind_) {
      case StepOptimizer::kNone:
      case StepOptimizer::kSgd:
        return;
      case StepOptimizer::kSgdMomentum:
        MakeStates(1);
        return;
      case StepOptimizer::kAdamFused:
        MakeStates(2);
        return;
      case StepOptimizer::kAdamForeach:
        MakeStates(2);
        return AllSquareRoots();
      case StepOptimizer::kAdamLoop:
        MakeStates(2);
        for (const TracedParameter& parameter : tracer_.parameters()) {
          if (!parameter.trainable) continue;
          const TracedStorage root = Temporary(parameter.bytes());
          tracer_.Touch(parameter.bytes());
        }
        return;
    }
  }

 private:
  TracedStorage Temporary(int64_t bytes) {
    return tracer_.Allocate(bytes, MemoryClass::kTemporary);
  }

  void MakeStates(int per_parameter) {
    if (has_states_) return;
    has_states_ = true;
    for (const TracedParameter& parameter : tracer_.parameters()) {
      if (!parameter.trainable) continue;
      if (kind_ == StepOptimizer::kAdamFused)
        tracer_.Keep(tracer_.Allocate(4, MemoryClass::kOptimizer));
      for (int i = 0; i < per_parameter; ++i) {
        tracer_.Keep(tracer_.Allocate(parameter.bytes(), MemoryClass::kOptimizer));
      }
    }
  }

  void AllSquareRoots() {
    std::vector<TracedStorage> roots;
    for (const TracedParameter& parameter : tracer_.parameters()) {
      if (parameter.trainable) roots.push_back(Temporary(parameter.bytes()));
    }
  }

  StepTracer& tracer_;
  StepOptimizer kind_;
  bool has_states_ = false;
};

KernelTraits TraitsOf(const StepDescription& step) {
  KernelTraits traits = KernelTraits::Cuda();
  traits.attention = step.attention;
  traits.gemm_workspace = step.device.gemm_workspace;
  return traits;
}

void RunSteps(const StepDescription& step, StepTracer& tracer) {
  TraceOps ops(tracer, TraitsOf(step));
  ops.SetParameterType(ElementSize(step.precision), /*trainable=*/true);
  tracer.EnterPhase("load");
  AnyModel model(ops, step);
  DescribedOptimizer optimizer(tracer, step.optimizer);
  const TracedStorage ids = tracer.Allocate(kIndex * step.batch * step.length);
  const auto evaluate = [&] {
    tracer.EnterPhase("evaluation");
    const StepTracer::NoGrad no_grad(tracer);
    model.Loss(ids);
  };
  if (step.evaluates_first) evaluate();
  for (int64_t i = 0; i < step.warm_up_forwards; ++i) {
    tracer.EnterPhase("warm-up forward");
    model.Loss(ids);
    tracer.DropTape();
  }
  for (int64_t i = 0; i < step.steps; ++i) {
    tracer.ClearGradients();
    for (int64_t part = 0; part < std::min(step.accumulation, kPartsThatDiffer); ++part) {
      tracer.EnterPhase("forward");
      TracedTensor loss = model.Loss(ids);
      tracer.EnterPhase("backward");
      tracer.Backward(std::move(loss));
    }
    if (step.clips) {
      tracer.EnterPhase("gradient clipping");
      optimizer.Clip();
    }
    tracer.EnterPhase("optimizer step");
    optimizer.Step();
    if (step.evaluates) evaluate();
  }
}

// The same steps after another beginning, or with an evaluation between them: what a run may as
// well do, and what may end in another layout of the cache.
std::vector<StepDescription> OtherOrders(const StepDescription& step) {
  std::vector<StepDescription> orders(2, step);
  orders[0].warm_up_forwards = step.warm_up_forwards == 0 ? 1 : 0;
  orders[1].evaluates_first = true;
  return orders;
}

}  // namespace

AllocationTrace TraceOfStep(const StepDescription& step) {
  StepTracer tracer;
  RunSteps(step, tracer);
  return tracer.TakeTrace();
}

int64_t NumParameters(const StepDescription& step) {
  StepTracer tracer;
  TraceOps ops(tracer, TraitsOf(step));
  const AnyModel model(ops, step);
  int64_t elements = 0;
  for (const TracedParameter& parameter : tracer.parameters()) elements += parameter.elements;
  return elements;
}

StepEstimate EstimateStep(const StepDescription& step) {
  const AllocationTrace trace = TraceOfStep(step);
  const LivePeak live = FindLivePeak(trace, kTensorUnit);
  AllocatorOptions unlimited = step.allocator;
  unlimited.limit = Bytes{AllocatorOptions::kUnlimited};
  const ReplayResult replay = Replay(trace, unlimited);

  StepEstimate estimate;
  estimate.num_parameters = NumParameters(step);
  estimate.by_class = live.by_class;
  estimate.tensors = live.peak;
  estimate.live_peak = replay.stats.allocated_peak;
  estimate.reserved_peak = replay.stats.reserved_peak;
  estimate.needed_limit = FindNeededLimit(trace, step.allocator, replay.stats);
  estimate.device_peak = estimate.reserved_peak + step.device.base;
  estimate.device_needed = estimate.needed_limit + step.device.base;
  estimate.peak_phase = trace.PhaseOf(replay.peak_event);

  estimate.reserved_low = estimate.reserved_high = estimate.reserved_peak;
  for (const StepDescription& variant : OtherOrders(step)) {
    const Bytes reserved = Replay(TraceOfStep(variant), unlimited).stats.reserved_peak;
    estimate.reserved_low = std::min(estimate.reserved_low, reserved);
    estimate.reserved_high = std::max(estimate.reserved_high, reserved);
  }
  const auto spread = static_cast<double>((estimate.reserved_high - estimate.reserved_low).count);
  estimate.fragile = spread > kFragileSpread * static_cast<double>(estimate.reserved_peak.count);
  estimate.fits = estimate.device_needed <= step.device.total;
  return estimate;
}

}  // namespace hpo
