#include "common/memory/trial_trace.h"

#include <array>
#include <utility>

#include "common/memory/step_tracer.h"
#include "common/memory/trace_ops.h"

namespace hpo {
namespace {

constexpr int64_t kIndex = 8;  // bytes of an int64
constexpr int64_t kFloat = 4;

// worker/trainer/training.
class TracedTrial {
 public:
  TracedTrial(TraceOps& ops, const ClassifierShape& shape)
      : tracer_(ops.tracer()),
        shape_(shape),
        ops_(ops),
        model_(ops, shape),
        groups_(model_.groups()) {}

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
      const TracedBatch batch = ToDevice(part);
      const TracedTensor part_loss = ops_.Scale(SumOfLosses(batch));
      MarkForward();
      tracer_.EnterPhase("backward");
      RunBackward(part_loss);
    }
  }

  std::vector<EventRange> TakeSecondLayer() { return std::move(second_layer_); }

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
      const TracedBatch batch = ToDevice(shape);
      const TracedTensor logits = model_.Forward(batch, /*training=*/false);
      MarkForward();
      SumOfRowLosses(logits, shape);
      shape_.multi_label ? FindPositive(logits) : tracer_.Touch(kIndex * shape.rows);
    }
  }

 private:
  bool HasLayerBetween() const { return shape_.model.num_layers >= 3; }

  void MarkForward() {
    const auto& marks = model_.backbone().marks();
    if (HasLayerBetween())
      second_layer_.push_back({.begin = marks[1].event, .end = marks[2].event});
  }

  void RunBackward(const TracedTensor& loss) {
    if (!HasLayerBetween()) {
      tracer_.Backward(loss);
      return;
    }
    const auto& marks = model_.backbone().marks();
    const std::array<int32_t, 2> stops = {marks[2].node, marks[1].node};
    const std::vector<size_t> reached = tracer_.Backward(loss, stops);
    second_layer_.push_back({.begin = reached[0], .end = reached[1]});
  }

  TracedStorage Temporary(int64_t bytes) {
    return tracer_.Allocate(bytes, MemoryClass::kTemporary);
  }

  TracedBatch ToDevice(const BatchShape& shape) {
    const int64_t positions = kIndex * shape.rows * shape.tokens;
    const int64_t labels = shape_.multi_label ? kFloat * shape_.num_labels : kIndex;
    TracedBatch batch{.shape = shape};
    batch.ids = tracer_.Allocate(positions);
    batch.mask = tracer_.Allocate(positions);
    batch.types = tracer_.Allocate(positions);
    batch.labels = tracer_.Allocate(labels * shape.rows);
    return batch;
  }

  TracedTensor SumOfLosses(const TracedBatch& batch) {
    const TracedTensor logits = model_.Forward(batch, /*training=*/true);
    return SumOfRowLosses(logits, batch.shape);
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
  const ClassifierShape& shape_;
  TraceOps& ops_;
  ClassifierTrace model_;
  const TracedParameterGroups& groups_;
  std::vector<EventRange> second_layer_;
};

}  // namespace

MarkedTrial TraceMarkedTrial(const ClassifierShape& shape, const TrialPasses& passes,
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
  return {.trace = tracer.trace(), .second_layer = trial.TakeSecondLayer()};
}

AllocationTrace TraceTrial(const ClassifierShape& shape, const TrialPasses& passes,
                           const KernelTraits& traits) {
  return TraceMarkedTrial(shape, passes, traits).trace;
}

}  // namespace hpo
