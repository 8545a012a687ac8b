#include "memory/trace/step_tracer.h"

#include "common/base/status.h"

namespace hpo::memory {

TracedParameter StepTracer::AddParameter(TracedParameter parameter) {
  Keep(Allocate(parameter.bytes(), MemoryClass::kWeights));
  return gradients_.Add(parameter);
}

GradientEdge StepTracer::Record(absl::InlinedVector<GradientEdge, 4> edges, TracedGradients saved,
                                BackwardFunction backward, const TapeNodeOptions& options) {
  bool wanted = options.has_parameters;
  for (const GradientEdge& edge : edges) wanted = wanted || edge.IsWanted();
  if (!recording_ || !wanted) return {};
  for (const GradientEdge& edge : edges) gradients_.BeginUse(edge);
  TapeNode node{
      .edges = std::move(edges), .saved = std::move(saved), .backward = std::move(backward)};
  node.incoming.resize(static_cast<size_t>(options.num_outputs));
  tape_.push_back(std::move(node));
  return {.node = static_cast<int32_t>(tape_.size() - 1)};
}

GradientEdge StepTracer::RecordLike(const TracedTensor& input, TracedGradients saved,
                                    const TapeNodeOptions& options) {
  return Record(
      {input.edge}, std::move(saved),
      [this, bytes = input.bytes()](auto&, const auto&) { return OneGradient(Allocate(bytes)); },
      options);
}

std::vector<size_t> StepTracer::Backward(TracedTensor root, std::span<const int32_t> stops) {
  const GradientEdge edge = root.edge;
  const TracedStorage gradient = Allocate(root.element_size);  // the caller's until the end
  root.storage.Reset();
  Push(edge, gradient);
  std::vector<size_t> reached;
  for (const int32_t stop : stops) {
    BackwardFrom(stop, {}, {});
    reached.push_back(trace().events.size());
  }
  BackwardFrom(0, {}, {});
  return reached;
}

void StepTracer::BackwardFrom(int32_t first, GradientEdge root, TracedStorage gradient) {
  const GradMode no_grad(*this, false);
  Push(root, std::move(gradient));
  while (NextNode() > first) {
    TapeNode node = std::move(tape_.back());
    tape_.pop_back();
    bool reached = false;
    for (const TracedStorage& incoming : node.incoming) reached = reached || incoming;
    if (reached) {
      RunNode(std::move(node));
    } else {
      for (const GradientEdge& edge : node.edges) gradients_.FinishUse(edge);
    }
  }
}

void StepTracer::RunNode(TapeNode node) {
  const bool outer = std::exchange(running_, true);
  TracedGradients outgoing = node.backward(node.incoming, node.saved);
  running_ = outer;
  HPO_CHECK(outgoing.size() == node.edges.size());
  // Kernels that make several gradients at once make those too that nobody wants.
  for (size_t i = 0; i < outgoing.size(); ++i) {
    if (!node.edges[i].IsWanted()) outgoing[i].Reset();
  }
  for (TracedStorage& incoming : node.incoming) incoming.Reset();
  node.backward = nullptr;  // with what it holds
  for (TracedStorage& saved : node.saved) saved.Reset();
  for (size_t i = 0; i < outgoing.size(); ++i) {
    if (outgoing[i]) Push(node.edges[i], std::move(outgoing[i]));
    gradients_.FinishUse(node.edges[i]);
  }
}

void StepTracer::Push(const GradientEdge& edge, TracedStorage gradient) {
  if (edge.node < 0) return gradients_.Arrive(edge, std::move(gradient));
  TapeNode& node = tape_[static_cast<size_t>(edge.node)];
  AccumulateInto(*this, node.incoming[static_cast<size_t>(edge.output)], std::move(gradient),
                 MemoryClass::kActivations);
}

}  // namespace hpo::memory
