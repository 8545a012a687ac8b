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
  bool saves = options.saves_others;
  for (const TracedStorage& tensor : saved) saves = saves || tensor;
  if (again_ != nullptr) {
    if (saves && !idle()) {
      again_->saved.push_back(std::move(saved));
      // The second run has saved enough: what follows in it allocates nothing.
      set_idle(again_->saved.size() == again_->num_saving);
    }
    return {.node = 0};  // on no tape: the first run's is
  }
  for (const GradientEdge& edge : edges) gradients_.BeginUse(edge);
  TapeNode node{
      .edges = std::move(edges), .saved = std::move(saved), .backward = std::move(backward)};
  node.incoming.resize(static_cast<size_t>(options.num_outputs));
  if (segment_ != nullptr && saves) {
    node.saved.clear();
    node.segment = segment_;
    node.saved_at = segment_->num_saving++;
  }
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

TracedTensor StepTracer::Checkpointed(std::function<TracedTensor()> segment) {
  if (!recording_) return segment();
  HPO_CHECK(segment_ == nullptr && again_ == nullptr);
  segment_ = std::make_shared<CheckpointedSegment>();
  segment_->run = std::move(segment);
  TracedTensor output = segment_->run();
  segment_.reset();
  return output;
}

void StepTracer::RunAgain(CheckpointedSegment& segment) {
  const GradMode recorded(*this, true);
  again_ = &segment;
  segment.run();
  again_ = nullptr;
  set_idle(false);
  HPO_CHECK(segment.saved.size() == segment.num_saving);
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
  held_by_graph_.clear();
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

void StepTracer::DropTape(GradientEdge root) {
  std::vector<int32_t> users(tape_.size(), 0);
  for (const TapeNode& node : tape_) {
    for (const GradientEdge& edge : node.edges) {
      if (edge.node >= 0) ++users[static_cast<size_t>(edge.node)];
    }
  }
  std::vector<int32_t> ending;
  if (root.node >= 0) ending.push_back(root.node);
  while (!ending.empty()) {
    TapeNode& node = tape_[static_cast<size_t>(ending.back())];
    ending.pop_back();
    DropNode(node);
    for (const GradientEdge& edge : node.edges) {
      if (edge.node >= 0 && --users[static_cast<size_t>(edge.node)] == 0) {
        ending.push_back(edge.node);
      }
    }
  }
  for (; !tape_.empty(); tape_.pop_back()) {
    if (tape_.back().backward != nullptr) DropNode(tape_.back());
  }
}

void StepTracer::DropNode(TapeNode& node) {
  node.backward = nullptr;
  for (TracedStorage& saved : node.saved) saved.Reset();
  node.segment.reset();
  for (const GradientEdge& edge : node.edges) gradients_.FinishUse(edge);
}

void StepTracer::RunNode(TapeNode node) {
  if (node.segment != nullptr) {
    if (node.segment->saved.empty()) RunAgain(*node.segment);
    node.saved = std::move(node.segment->saved[node.saved_at]);
  }
  TapeNode* const outer = std::exchange(running_, &node);
  TracedGradients outgoing = node.backward(node.incoming, node.saved);
  running_ = outer;
  HPO_CHECK(outgoing.size() == node.edges.size());
  // Kernels that make several gradients at once make those too that nobody wants.
  for (size_t i = 0; i < outgoing.size(); ++i) {
    if (!node.edges[i].IsWanted()) outgoing[i].Reset();
  }
  if (node.segment != nullptr) {  // its own again, and gone with the kernel
    while (!node.saved.empty()) node.saved.pop_back();
  }
  for (TracedStorage& incoming : node.incoming) incoming.Reset();
  node.backward = nullptr;  // with what it holds
  for (TracedStorage& saved : node.saved) saved.Reset();
  node.segment.reset();
  for (size_t i = 0; i < outgoing.size(); ++i) {
    if (outgoing[i]) Push(node.edges[i], std::move(outgoing[i]));
    gradients_.FinishUse(node.edges[i]);
  }
}

void StepTracer::LeaveKernel() {
  if (running_ == nullptr || running_->segment == nullptr) return;
  for (TracedStorage& saved : running_->saved) saved.Reset();
}

void StepTracer::Push(const GradientEdge& edge, TracedStorage gradient) {
  if (edge.node < 0) return gradients_.Arrive(edge, std::move(gradient));
  TapeNode& node = tape_[static_cast<size_t>(edge.node)];
  AccumulateInto(*this, sums_, node.incoming[static_cast<size_t>(edge.output)], std::move(gradient),
                 MemoryClass::kActivations);
}

}  // namespace hpo::memory
