#include "common/memory/recomputation_trace.h"

#include <utility>

namespace hpo {
namespace {

// Forward again with a tape, and backward through it at once. The gradient of the input.
TracedGradients Recompute(TraceOps& ops, const TracedSegment& segment, TracedTensor input,
                          bool autocast, const TracedStorage& gradient) {
  StepTracer& tracer = ops.tracer();
  TracedGradients result(1);
  const int32_t first = tracer.NextNode();
  {
    const StepTracer::EnableGrad enable_grad(tracer);
    if (input.edge.IsWanted()) {
      // Catches the gradient of the input.
      input.edge = tracer.Record({GradientEdge{.node = first}}, {},
                                 [&result](TracedGradients& arrived, const TracedGradients&) {
                                   result[0] = std::move(arrived[0]);
                                   return TracedGradients(1);
                                 });
    }
    if (autocast) ops.EnterAutocast(/*caches_weights=*/false);
    const GradientEdge root = segment(input).edge;
    if (autocast) ops.LeaveAutocast();
    tracer.BackwardFrom(first, root, gradient);
  }
  return result;
}

}  // namespace

TracedTensor RunRecomputed(TraceOps& ops, TracedSegment segment, const TracedTensor& input,
                           bool has_parameters) {
  StepTracer& tracer = ops.tracer();
  if (!tracer.recording()) return segment(input);
  TracedTensor output;
  {
    const StepTracer::NoGrad no_grad(tracer);
    output = segment(input);
  }
  output.edge = tracer.Record(
      {input.edge}, {},
      [&ops, segment = std::move(segment), kept = input, autocast = ops.in_autocast()](
          TracedGradients& incoming, const TracedGradients&) mutable {
        return Recompute(ops, segment, std::move(kept), autocast, incoming[0]);
      },
      {.num_outputs = 1, .has_parameters = has_parameters});
  return output;
}

}  // namespace hpo
