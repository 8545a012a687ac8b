#include "memory/trace/step_tracer.h"

#include <algorithm>

#include "common/base/status.h"

namespace hpo::memory {

// ---- TracedStorage -----------------------------------------------------------------------------

TracedStorage::TracedStorage(const TracedStorage& other)
    : tracer_(other.tracer_), block_(other.block_), is_view_(other.is_view_) {
  if (tracer_ != nullptr) ++tracer_->blocks_[static_cast<size_t>(block_)].holders;
}

TracedStorage::TracedStorage(TracedStorage&& other) noexcept
    : tracer_(std::exchange(other.tracer_, nullptr)),
      block_(other.block_),
      is_view_(other.is_view_) {}

TracedStorage& TracedStorage::operator=(TracedStorage other) noexcept {
  std::swap(tracer_, other.tracer_);
  std::swap(block_, other.block_);
  std::swap(is_view_, other.is_view_);
  return *this;
}

TracedStorage::~TracedStorage() {
  if (tracer_ != nullptr) tracer_->Release(block_);
}

int64_t TracedStorage::bytes() const {
  return tracer_ == nullptr ? 0 : tracer_->blocks_[static_cast<size_t>(block_)].bytes;
}

TracedStorage TracedStorage::AsView() const {
  TracedStorage view = *this;
  view.is_view_ = true;
  return view;
}

bool TracedStorage::IsUnique() const {
  return tracer_ != nullptr && tracer_->blocks_[static_cast<size_t>(block_)].holders == 1;
}

// ---- Memory ------------------------------------------------------------------------------------

TracedStorage StepTracer::Allocate(int64_t bytes, MemoryClass memory_class) {
  if (left_) return {};
  const auto block = static_cast<int32_t>(blocks_.size());
  blocks_.push_back({.bytes = bytes, .holders = 1, .memory_class = memory_class});
  trace_.num_blocks = block + 1;
  if (bytes > 0) {
    trace_.events.push_back({.bytes = bytes, .block = block, .memory_class = memory_class});
  }
  return TracedStorage(this, block);
}

void StepTracer::Release(int32_t block) {
  BlockCount& count = blocks_[static_cast<size_t>(block)];
  if (--count.holders > 0 || count.bytes == 0 || ending_) return;
  trace_.events.push_back({.bytes = count.bytes,
                           .block = block,
                           .memory_class = count.memory_class,
                           .allocates = false});
}

void StepTracer::Touch(int64_t bytes, MemoryClass memory_class) { Allocate(bytes, memory_class); }

TracedTensor StepTracer::NewTensor(int64_t elements, int64_t element_size) {
  return {.storage = Allocate(elements * element_size),
          .elements = elements,
          .element_size = element_size};
}

void StepTracer::EnterPhase(std::string phase) {
  trace_.phases.push_back({.first_event = trace_.events.size(), .name = std::move(phase)});
}

// ---- Parameters --------------------------------------------------------------------------------

TracedParameter StepTracer::AddParameter(const ParameterOptions& options) {
  const TracedParameter parameter{.index = static_cast<int32_t>(parameters_.size()),
                                  .elements = options.elements,
                                  .columns = options.columns,
                                  .element_size = options.element_size,
                                  .trainable = options.trainable};
  Keep(Allocate(parameter.bytes(), MemoryClass::kWeights));
  parameters_.push_back(parameter);
  gradients_.emplace_back();
  arriving_.emplace_back();
  uses_.push_back(0);
  return parameter;
}

bool StepTracer::HasGradient(const TracedParameter& parameter) const {
  return static_cast<bool>(gradients_[static_cast<size_t>(parameter.index)]);
}

void StepTracer::ClearGradients() {
  for (TracedStorage& gradient : gradients_) gradient.Reset();
}

void StepTracer::ClearGradient(const TracedParameter& parameter) {
  gradients_[static_cast<size_t>(parameter.index)].Reset();
}

// ---- Tape --------------------------------------------------------------------------------------

GradientEdge StepTracer::Record(absl::InlinedVector<GradientEdge, 4> edges, TracedGradients saved,
                                BackwardFunction backward, const TapeNodeOptions& options) {
  bool wanted = options.has_parameters;
  for (const GradientEdge& edge : edges) wanted = wanted || edge.IsWanted();
  if (!recording_ || !wanted) return {};
  bool saves = options.saves_others;
  for (const TracedStorage& tensor : saved) saves = saves || tensor;
  if (again_ != nullptr) {
    if (saves && !left_) {
      again_->saved.push_back(std::move(saved));
      left_ = again_->saved.size() == again_->num_saving;
    }
    return {.node = 0};  // on no tape: the first run's is
  }
  for (const GradientEdge& edge : edges) {
    if (edge.parameter >= 0) ++uses_[static_cast<size_t>(edge.parameter)];
  }
  Node node{.edges = std::move(edges), .saved = std::move(saved), .backward = std::move(backward)};
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
  const EnableGrad enable_grad(*this);
  again_ = &segment;
  segment.run();
  again_ = nullptr;
  left_ = false;
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
    reached.push_back(trace_.events.size());
  }
  BackwardFrom(0, {}, {});
  held_by_graph_.clear();
  return reached;
}

void StepTracer::BackwardFrom(int32_t first, GradientEdge root, TracedStorage gradient) {
  const NoGrad no_grad(*this);
  Push(root, std::move(gradient));
  while (NextNode() > first) {
    Node node = std::move(tape_.back());
    tape_.pop_back();
    bool reached = false;
    for (const TracedStorage& incoming : node.incoming) reached = reached || incoming;
    if (reached) {
      RunNode(std::move(node));
    } else {
      for (const GradientEdge& edge : node.edges) FinishUse(edge);
    }
  }
}

void StepTracer::DropTape(GradientEdge root) {
  std::vector<int32_t> users(tape_.size(), 0);
  for (const Node& node : tape_) {
    for (const GradientEdge& edge : node.edges) {
      if (edge.node >= 0) ++users[static_cast<size_t>(edge.node)];
    }
  }
  std::vector<int32_t> ending;
  if (root.node >= 0) ending.push_back(root.node);
  while (!ending.empty()) {
    Node& node = tape_[static_cast<size_t>(ending.back())];
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

void StepTracer::DropNode(Node& node) {
  node.backward = nullptr;
  for (TracedStorage& saved : node.saved) saved.Reset();
  node.segment.reset();
  for (const GradientEdge& edge : node.edges) FinishUse(edge);
}

void StepTracer::RunNode(Node node) {
  if (node.segment != nullptr) {
    if (node.segment->saved.empty()) RunAgain(*node.segment);
    node.saved = std::move(node.segment->saved[node.saved_at]);
  }
  Node* const outer = std::exchange(running_, &node);
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
    FinishUse(node.edges[i]);
  }
}

void StepTracer::LeaveKernel() {
  if (running_ == nullptr || running_->segment == nullptr) return;
  for (TracedStorage& saved : running_->saved) saved.Reset();
}

void StepTracer::Push(const GradientEdge& edge, TracedStorage gradient) {
  if (edge.parameter >= 0) {
    AccumulateInto(arriving_[static_cast<size_t>(edge.parameter)], std::move(gradient),
                   MemoryClass::kGradients);
  } else if (edge.node >= 0) {
    Node& node = tape_[static_cast<size_t>(edge.node)];
    AccumulateInto(node.incoming[static_cast<size_t>(edge.output)], std::move(gradient),
                   MemoryClass::kActivations);
  }
}

void StepTracer::FinishUse(const GradientEdge& edge) {
  if (edge.parameter < 0) return;
  const auto index = static_cast<size_t>(edge.parameter);
  if (--uses_[index] > 0 || !arriving_[index]) return;
  TracedStorage arrived = std::move(arriving_[index]);
  if (gradients_[index]) return;  // added in place
  // A parameter owns its gradient: one that others hold is copied.
  if (!arrived.IsUnique()) arrived = Allocate(arrived.bytes(), MemoryClass::kGradients);
  gradients_[index] = std::move(arrived);
}

// The first gradient is taken as it is; a sum is made in place where nobody else looks at it.
void StepTracer::AccumulateInto(TracedStorage& sum, TracedStorage gradient,
                                MemoryClass memory_class) {
  if (!sum) {
    sum = std::move(gradient);
  } else if (!options_.sums_in_place || !sum.IsUnique() || sum.is_view()) {
    // A view may stand for more than it holds, repeated.
    sum = Allocate(std::max(sum.bytes(), gradient.bytes()), memory_class);
  }
}

}  // namespace hpo::memory
