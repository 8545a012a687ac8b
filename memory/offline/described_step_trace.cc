// Tested by tests/memory/described_step_test.cc.
#include "memory/offline/described_step_trace.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "memory/offline/described_encoder.h"
#include "memory/offline/described_optimizer.h"
#include "memory/offline/traces/model_trace.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/linear_ops.h"
#include "memory/ops/loss_ops.h"
#include "memory/ops/model_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

constexpr Bytes kTensorUnit{512};
constexpr double kFragileSpread = 0.03;
// From the third part on, every part of an accumulated batch allocates what the second did.
constexpr int64_t kPartsThatDiffer = 3;

int64_t ElementSize(StepPrecision precision) { return precision == StepPrecision::kHalf ? 2 : 4; }

// Of the model's weights, but of those that are quantised and of adapters.
int64_t WeightSize(const StepDescription& step) {
  const bool adapted = step.model.has_value() && step.model->techniques.lora.has_value();
  const bool half_base =
      adapted && step.model->techniques.lora->base == FrozenStorage::Type::kBFloat16;
  return half_base ? 2 : ElementSize(step.precision);
}

// ---- Model -------------------------------------------------------------------------------------

// A described layer with its parameters; the members that its type needs are set.
struct BuiltLayer {
  DescribedLayer description;
  int64_t width = 0;   // of its input; of a layer that is one, its own
  int64_t tokens = 0;  // of its output
  TracedParameter table;
  TracedLinear linear;
  TracedNorm norm;
  std::unique_ptr<DescribedEncoder> encoder;
};

// What a step is given, and what its loop holds until the next step makes it again.
struct Batch {
  int64_t rows = 0;
  TracedStorage ids;
  TracedStorage labels;
};
struct StepResults {
  TracedTensor outputs;
  TracedTensor loss;
};

class Model {
 public:
  Model(TracedDevice& device, const StepDescription& step) : device_(device), step_(step) {
    tokens_ = step.length;
    for (const DescribedLayer& layer : step.layers) {
      layers_.push_back(std::visit([this](const auto& l) { return Build(l); }, layer));
      layers_.back().description = layer;
      layers_.back().tokens = tokens_;
    }
  }

  // Bytes of a batch, as it is given.
  int64_t InputBytes(int64_t rows) const {
    const BuiltLayer& first = layers_.front();
    const int64_t places = rows * first.tokens;
    return std::holds_alternative<EmbeddingLayer>(first.description)
               ? kIndexBytes * places
               : ElementSize(step_.precision) * places * first.width;
  }

  // Each has a label.
  int64_t OutputsOf(int64_t rows) const { return rows * layers_.back().tokens; }

  // Forward; under autocast, which the caller leaves.
  TracedTensor Outputs(const Batch& batch, bool training) {
    batch_ = batch.rows;
    training_ = training;
    if (step_.precision == StepPrecision::kAutocast) device_.EnterAutocast();
    TracedTensor x;
    for (const BuiltLayer& layer : layers_) {
      const TracedTensor input = x;  // torch.nn.Sequential's until the layer is done
      x = std::visit([&](const auto& l) { return Run(l, layer, input, batch.ids); },
                     layer.description);
    }
    return x;
  }

  // In the order of torch's parameters().
  const std::vector<TracedParameter>& parameters() const { return parameters_; }

  TracedTensor Loss(const TracedTensor& outputs, const Batch& batch) {
    const int64_t rows = OutputsOf(batch.rows);
    return ops::CrossEntropy(device_, outputs, rows, outputs.elements / rows, batch.labels);
  }

 private:
  // ---- Parameters, in the order of the modules ----

  BuiltLayer Build(const EmbeddingLayer& layer) {
    width_ = layer.width;
    rows_ = layer.rows;
    table_ = Add(device_.Parameter(layer.rows, layer.width));
    return {.width = width_, .table = table_};
  }
  BuiltLayer Build(const FeaturesLayer& layer) { return {.width = width_ = layer.width}; }
  BuiltLayer Build(const ImageLayer& layer) {
    sides_ = {layer.height, layer.width};
    tokens_ = layer.height * layer.width;
    return {.width = width_ = layer.channels};
  }
  BuiltLayer Build(const ConvolutionLayer& layer) {
    sides_ = {layer.SideOf(sides_.first), layer.SideOf(sides_.second)};
    tokens_ = sides_.first * sides_.second;
    BuiltLayer built{.width = width_};
    built.linear.weight = Add(device_.Parameter(layer.out, width_ * layer.kernel * layer.kernel));
    if (layer.bias) built.linear.bias = Add(device_.Parameter(layer.out));
    width_ = layer.out;
    return built;
  }
  BuiltLayer Build(const PoolingLayer&) {
    tokens_ = 1;
    return {.width = width_};
  }
  BuiltLayer Build(const FlattenLayer&) {
    width_ *= tokens_;
    tokens_ = 1;
    return {.width = width_};
  }
  BuiltLayer Build(const LanguageHeadLayer& layer) {
    BuiltLayer built{.width = width_};
    if (layer.tied) {
      built.linear = {.weight = table_, .in_features = width_, .out_features = rows_};
    } else {
      built.linear = Add(ops::MakeLinear(device_, width_, rows_, /*bias=*/false));
    }
    width_ = rows_;
    return built;
  }
  BuiltLayer Build(const PositionLayer& layer) {
    return {.width = width_, .table = Add(device_.Parameter(layer.rows * width_))};
  }
  BuiltLayer Build(const EncoderLayers& layer) {
    BuiltLayer built{.width = width_};
    built.encoder = std::make_unique<DescribedEncoder>(device_, step_, layer, width_);
    for (const TracedParameter& parameter : built.encoder->parameters()) Add(parameter);
    return built;
  }
  BuiltLayer Build(const LinearLayer& layer) {
    BuiltLayer built{.width = width_,
                     .linear = Add(ops::MakeLinear(device_, width_, layer.out, layer.bias))};
    width_ = layer.out;
    return built;
  }
  BuiltLayer Build(const NormLayer&) {
    return {.width = width_, .norm = Add(ops::MakeNorm(device_, width_))};
  }
  template <typename Layer>
  BuiltLayer Build(const Layer&) {
    return {.width = width_};
  }

  const TracedParameter& Add(const TracedParameter& parameter) {
    parameters_.push_back(parameter);
    return parameters_.back();
  }
  template <typename Layer>  // TracedLinear, TracedNorm
  const Layer& Add(const Layer& layer) {
    Add(layer.weight);
    if (layer.bias.has_value()) Add(*layer.bias);
    return layer;
  }

  // ---- Forward ----

  TracedTensor Run(const EmbeddingLayer&, const BuiltLayer& built, const TracedTensor&,
                   const TracedStorage& ids) {
    return ops::Embedding(device_, ids, batch_ * built.tokens, built.table, built.width);
  }
  TracedTensor Run(const FeaturesLayer&, const BuiltLayer& built, const TracedTensor&,
                   const TracedStorage& input) {
    return Given(built, input);
  }
  TracedTensor Run(const ImageLayer&, const BuiltLayer& built, const TracedTensor&,
                   const TracedStorage& input) {
    return Given(built, input);
  }
  // Backward: the input's gradient, the weight's, the bias's.
  TracedTensor Run(const ConvolutionLayer&, const BuiltLayer& built, const TracedTensor& input,
                   const TracedStorage&) {
    StepTracer& tracer = device_.tracer();
    const TracedTensor weight =
        ops::CastForProduct(device_, ModelParameters::AsTensor(built.linear.weight));
    const std::optional<TracedParameter>& bias = built.linear.bias;
    const TracedTensor x = ops::CastForProduct(device_, input);
    const int64_t channels = built.linear.weight.elements / built.linear.weight.columns;
    TracedTensor output = tracer.NewTensor(batch_ * built.tokens * channels, x.element_size);
    output.edge = tracer.Record(
        {x.edge, weight.edge, bias.has_value() ? bias->Edge() : GradientEdge()},
        {x.storage, weight.storage},
        [&tracer, x_bytes = x.edge.IsWanted() ? x.bytes() : -1, weight_bytes = weight.bytes(),
         bias_bytes = bias.has_value() ? bias->bytes() : -1](auto&, const auto&) {
          TracedGradients gradients(3);
          if (x_bytes >= 0) gradients[0] = tracer.Allocate(x_bytes);
          gradients[1] = tracer.Allocate(weight_bytes, MemoryClass::kGradients);
          if (bias_bytes >= 0) gradients[2] = tracer.Allocate(bias_bytes, MemoryClass::kGradients);
          return gradients;
        });
    return output;
  }
  TracedTensor Run(const FlattenLayer&, const BuiltLayer&, const TracedTensor& x,
                   const TracedStorage&) {
    return x;
  }
  TracedTensor Run(const LanguageHeadLayer&, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    return ops::Cast(device_, ops::Linear(device_, x, built.linear), kFloatBytes);
  }
  TracedTensor Run(const PositionLayer&, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    return ops::AddBroadcast(device_, x, built.table);
  }
  TracedTensor Run(const EncoderLayers&, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    return built.encoder->Run(x, {.rows = batch_, .training = training_});
  }
  TracedTensor Run(const LinearLayer&, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    return ops::Linear(device_, x, built.linear);
  }
  TracedTensor Run(const ActivationLayer& layer, const BuiltLayer&, const TracedTensor& x,
                   const TracedStorage&) {
    return ops::Activate(device_, x, layer.function);
  }
  TracedTensor Run(const DropoutLayer& layer, const BuiltLayer&, const TracedTensor& x,
                   const TracedStorage&) {
    return ops::Dropout(device_, x, training_ ? layer.probability : 0.0);
  }
  TracedTensor Run(const NormLayer&, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    return ops::LayerNorm(device_, x, built.norm);
  }
  TracedTensor Run(const PoolingLayer& layer, const BuiltLayer& built, const TracedTensor& x,
                   const TracedStorage&) {
    if (layer.kind == PoolingLayer::Kind::kMean) return ops::Mean(device_, x, batch_ * built.width);
    return ops::Select(device_, x, x.elements / (batch_ * built.width));
  }

  TracedTensor Given(const BuiltLayer& built, const TracedStorage& input) const {
    return {.storage = input,
            .elements = batch_ * built.tokens * built.width,
            .element_size = ElementSize(step_.precision)};
  }

  TracedDevice& device_;
  const StepDescription& step_;
  std::vector<BuiltLayer> layers_;
  std::vector<TracedParameter> parameters_;
  // While the layers are made.
  int64_t width_ = 0;
  int64_t tokens_ = 0;
  std::pair<int64_t, int64_t> sides_;
  // The embedding's.
  TracedParameter table_;
  int64_t rows_ = 0;
  int64_t batch_ = 0;  // rows of what runs
  bool training_ = true;
};

// A described model: known, or its layers.
class AnyModel {
 public:
  AnyModel(TracedDevice& device, const StepDescription& step) : device_(device), step_(step) {
    if (step.model.has_value()) {
      auto known =
          MakeModelTrace(device, step.model->shape, step.model->head, step.model->techniques);
      HPO_CHECK(known.ok());  // ParseStepDescription refuses what has no trace
      known_ = *std::move(known);
    } else {
      layers_.emplace(device, step);
    }
  }

  // Those that are trained.
  std::vector<TracedParameter> TrainedParameters() const {
    std::vector<TracedParameter> trained =
        layers_.has_value() ? layers_->parameters() : device_.tracer().gradients().parameters();
    std::erase_if(trained, [](const TracedParameter& parameter) { return !parameter.trainable; });
    return trained;
  }

  // Of a batch: what is given, and the labels.
  int64_t InputBytes(int64_t rows) const {
    return layers_.has_value() ? layers_->InputBytes(rows) : kIndexBytes * rows * step_.length;
  }
  int64_t LabelBytes(int64_t rows) const {
    return kIndexBytes * (layers_.has_value() ? layers_->OutputsOf(rows) : rows);
  }

  // A forward alone.
  TracedTensor Forward(const Batch& batch, bool training) {
    TracedTensor result =
        layers_.has_value() ? layers_->Outputs(batch, training) : KnownLoss(batch);
    device_.LeaveAutocast();
    return result;
  }

  // A forward to the loss. The outputs of a known model end with it, as in transformers' Trainer.
  void Forward(const Batch& batch, StepResults& results) {
    if (layers_.has_value()) {
      results.outputs = layers_->Outputs(batch, /*training=*/true);
      results.loss = layers_->Loss(results.outputs, batch);
    } else {
      results.loss = KnownLoss(batch);
    }
    device_.LeaveAutocast();
  }

 private:
  TracedTensor KnownLoss(const Batch& batch) {
    if (step_.precision == StepPrecision::kAutocast) device_.EnterAutocast();
    return known_->Loss({.rows = batch.rows, .tokens = step_.length}, batch.ids);
  }

  TracedDevice& device_;
  const StepDescription& step_;
  std::optional<Model> layers_;
  std::unique_ptr<ModelTrace> known_;
};

// ---- Steps -------------------------------------------------------------------------------------

KernelTraits TraitsOf(const StepDescription& step) {
  KernelTraits traits = KernelTraits::Cuda();
  traits.attention = AttentionKernels::Same(step.attention);
  traits.gemm_workspace = step.device.gemm_workspace;
  traits.bias_workspace = kBiasWorkspace;
  traits.multiprocessors = step.device.multiprocessors;
  traits.threads_per_multiprocessor = step.device.threads_per_multiprocessor;
  return traits;
}

// The loop around the model, as most people write it: a batch, and what a step made, is held by its
// variables until the next step has made it again.
class Loop {
 public:
  Loop(const StepDescription& step, StepTracer& tracer)
      : step_(step), tracer_(tracer), device_(tracer, TraitsOf(step)) {
    device_.SetParameterType(WeightSize(step), /*trainable=*/true);
    device_.SetFloat16(step.float16 && step.precision == StepPrecision::kAutocast);
    tracer.EnterPhase("load");
    model_.emplace(device_, step);
    optimizer_.emplace(tracer, step.optimizer, model_->TrainedParameters());
  }

  void Run() {
    tracer_.EnterPhase("batch");
    if (step_.evaluates_first || step_.warm_up_forwards > 0) TakeBatch(step_.batch);
    if (step_.evaluates_first) Evaluate();
    for (int64_t i = 0; i < step_.warm_up_forwards; ++i) {
      tracer_.EnterPhase("warm-up forward");
      const TracedTensor result = model_->Forward(batch_, /*training=*/true);
      tracer_.DropTape(result.edge);
    }
    for (int64_t i = 0; i < step_.steps; ++i) Step(step_.batch);
    if (!step_.last_batch.has_value()) return;
    Step(*step_.last_batch);
    Step(step_.batch);
  }

 private:
  // The old one ends before the new one comes.
  void TakeBatch(int64_t rows) {
    batch_ = {.rows = rows};
    batch_.ids = tracer_.Allocate(model_->InputBytes(rows));
    batch_.labels = tracer_.Allocate(model_->LabelBytes(rows));
  }

  void Evaluate() {
    tracer_.EnterPhase("evaluation");
    const StepTracer::GradMode no_grad(tracer_, false);
    model_->Forward(batch_, /*training=*/false);
  }

  // `last_rows`: of its last part.
  void Step(int64_t last_rows) {
    const int64_t num_parts = std::min(step_.accumulation, kPartsThatDiffer);
    for (int64_t part = 0; part < num_parts; ++part) {
      tracer_.EnterPhase("batch");
      TakeBatch(part + 1 == num_parts ? last_rows : step_.batch);
      if (part == 0) optimizer_->ClearGradients();
      tracer_.EnterPhase("forward");
      model_->Forward(batch_, results_);
      tracer_.EnterPhase("backward");
      tracer_.Backward(results_.loss);
    }
    if (step_.clips) {
      tracer_.EnterPhase("gradient clipping");
      optimizer_->Clip();
    }
    tracer_.EnterPhase("optimizer step");
    optimizer_->Step();
    if (step_.evaluates) Evaluate();
  }

  const StepDescription& step_;
  StepTracer& tracer_;
  TracedDevice device_;
  std::optional<AnyModel> model_;
  std::optional<DescribedOptimizer> optimizer_;
  Batch batch_;
  StepResults results_;
};

// The same steps after another beginning, with an evaluation before them, or with a smaller batch
// at an epoch's end: what a run may as well do, and what may end in another layout of the cache.
std::vector<StepDescription> OtherOrders(const StepDescription& step) {
  std::vector<StepDescription> orders(2, step);
  orders[0].warm_up_forwards = step.warm_up_forwards == 0 ? 1 : 0;
  orders[1].evaluates_first = true;
  if (!step.last_batch.has_value() && step.batch > 1) {
    orders.push_back(step);
    orders.back().last_batch = step.batch - 1;
  }
  return orders;
}

}  // namespace

std::vector<AllocationTrace> TracesOfStep(const StepDescription& step) {
  std::vector<AllocationTrace> traces = {TraceOfStep(step)};
  for (const StepDescription& order : OtherOrders(step)) traces.push_back(TraceOfStep(order));
  return traces;
}

AllocationTrace TraceOfStep(const StepDescription& step) {
  StepTracer tracer;
  Loop loop(step, tracer);
  loop.Run();
  return tracer.TakeTrace();
}

int64_t NumParameters(const StepDescription& step) {
  StepTracer tracer;
  TracedDevice device(tracer, TraitsOf(step));
  StepDescription plain = step;  // a quantised weight is no parameter
  if (step.model.has_value() && step.model->techniques.lora.has_value()) {
    plain.model->techniques.lora->base = FrozenStorage::Type::kFloat32;
  }
  const AnyModel model(device, plain);
  int64_t elements = 0;
  for (const TracedParameter& parameter : tracer.gradients().parameters())
    elements += parameter.elements;
  return elements;
}

StepEstimate EstimateStep(const StepDescription& step) {
  const std::vector<AllocationTrace> orders = TracesOfStep(step);
  const AllocationTrace& trace = orders.front();
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
  estimate.device_peak = estimate.reserved_peak + step.device.base;
  estimate.peak_phase = trace.PhaseOf(replay.peak_event);

  estimate.reserved_low = estimate.reserved_high = estimate.reserved_peak;
  for (const AllocationTrace& order : orders) {
    const AllocatorStats stats = &order == &trace ? replay.stats : Replay(order, unlimited).stats;
    estimate.reserved_low = std::min(estimate.reserved_low, stats.reserved_peak);
    estimate.reserved_high = std::max(estimate.reserved_high, stats.reserved_peak);
    estimate.needed_limit =
        std::max(estimate.needed_limit, FindNeededLimit(order, step.allocator, stats));
  }
  estimate.device_needed = estimate.needed_limit + step.device.base;
  const auto spread = static_cast<double>((estimate.reserved_high - estimate.reserved_low).count);
  estimate.fragile = spread > kFragileSpread * static_cast<double>(estimate.reserved_peak.count);
  estimate.fits = estimate.device_needed <= step.device.total;
  return estimate;
}

}  // namespace hpo::memory
