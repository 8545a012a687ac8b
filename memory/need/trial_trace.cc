// Tested by tests/memory/need/memory_replay_test.cc.
#include "memory/need/trial_trace.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "memory/families/task_trace.h"
#include "memory/ops/reduction_scratch.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {
namespace {

constexpr int64_t kDouble = 8;
constexpr int64_t kUnreadBytes = 2048;

// worker/trainer/training.
class TracedTrial {
 public:
  TracedTrial(TracedDevice& device, const ClassifierShape& shape)
      : tracer_(device.tracer()),
        shape_(shape),
        device_(device),
        task_(MakeTaskTrace(device, shape)),
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
    // Where a card leaves what nobody has read: training/step_scalars.
    if (!device_.traits().cpu) tracer_.Keep(tracer_.Allocate(kUnreadBytes));
  }

  // The step's loss, which lives as long as nobody has read it.
  TracedStorage ComputeGradients(const std::vector<BatchShape>& parts) {
    TracedStorage loss = tracer_.Allocate(kFloatBytes);
    for (const BatchShape& part : parts) {
      tracer_.EnterPhase("forward");
      const TracedBatch batch = task_->BatchOf(part);
      const TracedTensor part_loss = ops::Scale(device_, task_->SumOfLosses(batch));
      MarkForward();
      tracer_.EnterPhase("backward");
      RunBackward(part_loss);
    }
    return loss;
  }

  std::vector<EventRange> TakeSecondLayer() { return std::move(second_layer_); }

  // ClipGradients, and where nobody reads the norm ClipGradientsUnread, of
  // worker/trainer/optimizers/parameter_groups.h.
  void ClipGradients(bool scales) {
    const std::vector<int64_t> elements = GradientElements();
    {
      const std::vector<TracedStorage> norms = Norms(elements);
      const TracedStorage stacked = Temporary(kFloatBytes * std::ssize(elements));
      const TracedStorage norm = Temporary(kFloatBytes);
      ops::TouchReductionScratch(device_,
                                 {.rows = 1, .columns = std::ssize(elements), .over_rows = false});
    }
    if (!scales) return;
    for (size_t i = 0; i < elements.size(); ++i) const ops::Number factor(device_);
  }

  void ClipGradientsUnread() {
    const std::vector<int64_t> elements = GradientElements();
    TracedStorage norm;
    {
      const std::vector<TracedStorage> norms = Norms(elements);
      const TracedStorage stacked = Temporary(kFloatBytes * std::ssize(elements));
      norm = Temporary(kFloatBytes);
      ops::TouchReductionScratch(device_,
                                 {.rows = 1, .columns = std::ssize(elements), .over_rows = false});
    }
    const TracedStorage exact = Temporary(kDouble);
    const TracedStorage most = Temporary(kDouble);
    TracedStorage factor;
    {
      const TracedStorage divisor = Temporary(kDouble);
      const TracedStorage quotient = Temporary(kDouble);
      const TracedStorage is_more = Temporary(kBoolBytes);
      const TracedStorage one = Temporary(kDouble);
      factor = Temporary(kDouble);
    }
    Temporary(kFloatBytes);
  }

  // What the step takes in addition to what is kept: on a card, for Adafactor's sums
  // (worker/trainer/optimizers/adafactor.cc).
  void StepOptimizer() {
    if (shape_.optimizer.kind != OptimizerKind::kAdafactor) return;
    for (const auto* group : {&groups_.decaying, &groups_.others}) {
      for (const TracedParameter& parameter : *group) {
        const int64_t rows = parameter.elements / parameter.columns;
        const int64_t columns = parameter.columns;
        if (columns > 1) {
          SumPieces(rows, columns, /*over_rows_too=*/true);
          SumVector(rows);
        }
        SumPieces(rows, columns, /*over_rows_too=*/false);
        SumVector(rows);
      }
    }
  }

  void ClearGradients() {
    for (const auto* group : {&groups_.decaying, &groups_.others}) {
      for (const TracedParameter& parameter : *group) tracer_.gradients().Clear(parameter);
    }
  }

  void Evaluate(const std::vector<BatchShape>& batches) {
    const StepTracer::GradMode no_grad(tracer_, false);
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

  void SumPieces(int64_t rows, int64_t columns, bool over_rows_too) {
    const int64_t at_once = AdafactorScratch::RowsAtOnce(columns);
    for (int64_t first = 0; first < rows; first += at_once) {
      const int64_t count = std::min(at_once, rows - first);
      if (count == 1) {
        SumVector(columns);
      } else {
        ops::TouchReductionScratch(device_,
                                   {.rows = count, .columns = columns, .over_rows = false});
      }
      if (over_rows_too) ops::TouchReductionScratch(device_, {.rows = count, .columns = columns});
    }
  }

  void SumVector(int64_t elements) {
    for (int64_t first = 0; first < elements; first += AdafactorScratch::kMostSummed) {
      ops::TouchReductionScratch(
          device_, {.rows = 1,
                    .columns = std::min(AdafactorScratch::kMostSummed, elements - first),
                    .over_rows = false});
    }
  }

  // Of each gradient, in the groups' order.
  std::vector<int64_t> GradientElements() const {
    std::vector<int64_t> elements;
    for (const auto* group : {&groups_.decaying, &groups_.others}) {
      for (const TracedParameter& parameter : *group) elements.push_back(parameter.elements);
    }
    return elements;
  }

  // at::_foreach_norm: on a card all of them at once, in chunks.
  std::vector<TracedStorage> Norms(const std::vector<int64_t>& elements) {
    TracedStorage of_chunks;
    if (!device_.traits().cpu) {
      const int64_t most = *std::max_element(elements.begin(), elements.end());
      of_chunks = Temporary(NormsOfChunks(std::ssize(elements), most).count);
    }
    std::vector<TracedStorage> norms;
    for (size_t i = 0; i < elements.size(); ++i) norms.push_back(Temporary(kFloatBytes));
    return norms;
  }

  TracedStorage Temporary(int64_t bytes) {
    return tracer_.Allocate(bytes, MemoryClass::kTemporary);
  }

  StepTracer& tracer_;
  const ClassifierShape& shape_;
  TracedDevice& device_;
  const std::unique_ptr<TaskTrace> task_;
  const TracedParameterGroups& groups_;
  std::vector<EventRange> second_layer_;
};

}  // namespace

MarkedTrial TraceMarkedTrial(const ClassifierShape& shape, const TrialPasses& passes,
                             const KernelTraits& traits) {
  StepTracer tracer;
  TracedDevice device(tracer, traits);
  device.SetWarm();
  tracer.EnterPhase("model");
  TracedTrial trial(device, shape);
  tracer.EnterPhase("optimizer states");
  trial.AllocateStates();
  for (const MeasuredSteps& stretch : passes.stretches) {
    for (const std::vector<BatchShape>& parts : stretch.steps) {
      TracedStorage loss = trial.ComputeGradients(parts);
      const bool is_probe = passes.begins_with_probe && &stretch == &passes.stretches.front();
      const bool divides_scale = shape.execution.precision == Precision::kFloat16;
      const bool reads_loss = traits.cpu || is_probe || divides_scale;
      if (reads_loss) loss.Reset();
      tracer.EnterPhase("gradient clipping");
      if (reads_loss) {
        trial.ClipGradients(passes.scales_gradients || divides_scale);
      } else {
        trial.ClipGradientsUnread();
        loss.Reset();
      }
      tracer.EnterPhase("optimizer step");
      if (!is_probe) trial.StepOptimizer();
      trial.ClearGradients();
    }
    tracer.EnterPhase("evaluation");
    trial.Evaluate(stretch.evaluation);
  }
  return {.trace = tracer.TakeTrace(), .second_layer = trial.TakeSecondLayer()};
}

AllocationTrace TraceWarmUp(const KernelTraits& traits) {
  StepTracer tracer;
  if (traits.gemm_workspace == 0) return tracer.TakeTrace();
  constexpr int64_t kWidth = 64;
  constexpr int64_t kMatrix = kFloatBytes * kWidth * kWidth;
  tracer.EnterPhase("warm-up");
  {
    const TracedStorage weight = tracer.Allocate(kMatrix);
    const TracedStorage bias = tracer.Allocate(kFloatBytes * kWidth);
    const TracedStorage input = tracer.Allocate(kMatrix);
    const TracedStorage output = tracer.Allocate(kMatrix);
    // Forward's, then those of backward's thread.
    for (int thread = 0; thread < 2; ++thread) {
      tracer.Keep(tracer.Allocate(traits.gemm_workspace, MemoryClass::kWorkspaces));
      tracer.Keep(tracer.Allocate(traits.bias_workspace, MemoryClass::kWorkspaces));
    }
  }
  return tracer.TakeTrace();
}

AllocationTrace TraceTrial(const ClassifierShape& shape, const TrialPasses& passes,
                           const KernelTraits& traits) {
  return TraceMarkedTrial(shape, passes, traits).trace;
}

}  // namespace hpo::memory
