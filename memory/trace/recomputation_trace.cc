#include "memory/trace/recomputation_trace.h"

#include <algorithm>
#include <utility>

namespace hpo::memory {
namespace {

// Forward again with a tape, and backward through it at once. The gradients of the inputs.
TracedGradients Recompute(TracedDevice& device, const TracedSegment& segment,
                          std::vector<TracedTensor> inputs, bool autocast,
                          const TracedStorage& gradient) {
  StepTracer& tracer = device.tracer();
  TracedGradients result(inputs.size());
  const int32_t first = tracer.NextNode();
  const ParameterGradients::InnerBackward inner(tracer.gradients());
  {
    const StepTracer::GradMode recorded(tracer, true);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].edge.IsWanted()) continue;
      // Catches the gradient of the input.
      inputs[i].edge = tracer.Record({GradientEdge{.node = tracer.NextNode()}}, {},
                                     [&result, i](TracedGradients& arrived, const auto&) {
                                       result[i] = std::move(arrived[0]);
                                       return TracedGradients(1);
                                     });
    }
    if (autocast) device.EnterAutocast();
    const GradientEdge root = segment(inputs).edge;
    if (autocast) device.LeaveAutocast();
    tracer.BackwardFrom(first, root, gradient);
  }
  return result;
}

}  // namespace

TracedTensor RunRecomputed(TracedDevice& device, TracedSegment segment,
                           std::vector<TracedTensor> inputs, bool has_parameters) {
  StepTracer& tracer = device.tracer();
  const bool trains = has_parameters ||
                      std::any_of(inputs.begin(), inputs.end(),
                                  [](const TracedTensor& input) { return input.edge.IsWanted(); });
  if (!trains || !tracer.recording()) return segment(inputs);
  TracedTensor output;
  {
    const StepTracer::GradMode no_grad(tracer, false);
    output = segment(inputs);
  }
  absl::InlinedVector<GradientEdge, 4> edges;
  for (const TracedTensor& input : inputs) edges.push_back(input.edge);
  output.edge = tracer.Record(
      std::move(edges), {},
      [&device, segment = std::move(segment), kept = std::move(inputs),
       autocast = device.in_autocast()](TracedGradients& incoming, const TracedGradients&) mutable {
        return Recompute(device, segment, std::move(kept), autocast, incoming[0]);
      },
      {.num_outputs = 1, .has_parameters = has_parameters});
  return output;
}

}  // namespace hpo::memory
