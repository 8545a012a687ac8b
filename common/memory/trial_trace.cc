#include "common/memory/trial_trace.h"

#include <array>
#include <memory>
#include <utility>

#include "common/memory/step_tracer.h"
#include "common/memory/task_trace.h"
#include "common/memory/trace_ops.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;

// worker/trainer/training.
class TracedTrial {
 public:
  TracedTrial(TraceOps& ops, const ClassifierShape& shape)
      : tracer_(ops.tracer()),
        shape_(shape),
        ops_(ops),
        task_(MakeTaskTrace(ops, shape)),
        groups_(task_->groups()) {}

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
      const TracedBatch batch = task_->BatchOf(part);
      const TracedTensor part_loss = ops_.Scale(task_->SumOfLosses(batch));
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
      task_->Evaluate(shape);
      MarkForward();
    }
  }

 private:
  bool HasLayerBetween() const { return shape_.model.num_layers >= 3; }

  void MarkForward() {
    const auto& marks = task_->backbone().marks();
    if (HasLayerBetween())
      second_layer_.push_back({.begin = marks[1].event, .end = marks[2].event});
  }

  void RunBackward(const TracedTensor& loss) {
    if (!HasLayerBetween()) {
      tracer_.Backward(loss);
      return;
    }
    const auto& marks = task_->backbone().marks();
    const std::array<int32_t, 2> stops = {marks[2].node, marks[1].node};
    const std::vector<size_t> reached = tracer_.Backward(loss, stops);
    second_layer_.push_back({.begin = reached[0], .end = reached[1]});
  }

  TracedStorage Temporary(int64_t bytes) {
    return tracer_.Allocate(bytes, MemoryClass::kTemporary);
  }

  StepTracer& tracer_;
  const ClassifierShape& shape_;
  TraceOps& ops_;
  const std::unique_ptr<TaskTrace> task_;
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
  return {.trace = tracer.TakeTrace(), .second_layer = trial.TakeSecondLayer()};
}

AllocationTrace TraceTrial(const ClassifierShape& shape, const TrialPasses& passes,
                           const KernelTraits& traits) {
  return TraceMarkedTrial(shape, passes, traits).trace;
}

}  // namespace hpo
