// A symbolic autograd: runs a model's forward and backward on tensors that have a size but no
// memory, and writes down what they allocate and free. A model's trace is written like its forward;
// lifetimes follow by themselves, as in torch: a tensor's memory is freed when its last holder
// goes, and holders are variables of the forward, what operations save for backward, and gradients
// on their way.
//
//   StepTracer tracer;
//   const TracedParameter weight = tracer.AddParameter({.elements = 768 * 768});
//   tracer.EnterPhase("forward");
//   TracedTensor loss = ...;                     // operations of tensor_ops.h and others
//   tracer.EnterPhase("backward");
//   tracer.Backward(std::move(loss));
//   Replay(tracer.trace(), options);
//
// Not thread-safe. About 50 ns an event.
// Source of the order: torch's autograd engine (torch/csrc/autograd/engine.cpp, input_buffer.cpp,
// functions/accumulate_grad.h), torch 2.11.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "memory/trace/parameter_gradients.h"
#include "memory/trace/traced_memory.h"

namespace hpo::memory {

// Gradients into or out of a node, by output or by input; an empty one does not exist.
using TracedGradients = absl::InlinedVector<TracedStorage, 4>;

// The gradient of an operation with one input.
inline TracedGradients OneGradient(TracedStorage gradient) {
  TracedGradients gradients;
  gradients.push_back(std::move(gradient));
  return gradients;
}

// What backward of an operation does: allocates the gradients of its inputs, in the order of the
// edges it was recorded with. `incoming` may be moved from: a gradient that is passed on.
using BackwardFunction =
    std::function<TracedGradients(TracedGradients& incoming, const TracedGradients& saved)>;

struct TapeNodeOptions {
  int32_t num_outputs = 1;
  bool has_parameters = false;  // that are trained
  bool saves_others = false;    // what is no tensor of the trace: a weight
};

// A part of the forward that runs again in backward.
struct CheckpointedSegment {
  std::function<TracedTensor()> run;
  size_t num_saving = 0;               // operations that save something
  std::vector<TracedGradients> saved;  // by such an operation, of the second run
};

// A recorded operation.
struct TapeNode {
  absl::InlinedVector<GradientEdge, 4> edges;
  TracedGradients saved;
  TracedGradients incoming;
  BackwardFunction backward;
  std::shared_ptr<CheckpointedSegment> segment;  // that `saved` comes from, at `saved_at`
  size_t saved_at = 0;
};

class StepTracer : public TracedMemory {
 public:
  explicit StepTracer(GradientSums sums = GradientSums::kInPlace)
      : sums_(sums), gradients_(*this, sums) {}
  ~StepTracer() { End(); }

  // ---- Parameters ----

  // Allocates the weight now; it lives as long as the tracer.
  TracedParameter AddParameter(TracedParameter parameter);
  ParameterGradients& gradients() { return gradients_; }

  // Holds `storage` until the tracer ends: optimizer states, workspaces.
  void Keep(TracedStorage storage) { kept_.push_back(std::move(storage)); }

  // ---- Tape ----

  // Whether operations are recorded; see GradMode.
  bool recording() const { return recording_; }
  // Whether what runs does so in backward, which has a thread of its own.
  bool in_backward() const { return running_ != nullptr || again_ != nullptr; }

  // Adds a node. `edges`: where the gradients of its inputs go, in the order in which `backward`
  // returns them and in which they arrive there. `saved` is held until the node has run, then freed
  // in order. Nothing is recorded (and `saved` is let go) without recording, or when no edge is
  // wanted unless the node trains parameters of its own. Returns the node's edge.
  GradientEdge Record(absl::InlinedVector<GradientEdge, 4> edges, TracedGradients saved,
                      BackwardFunction backward, const TapeNodeOptions& options = {});
  // As Record, for the usual operation with one input: its gradient is a tensor of the input's
  // size.
  GradientEdge RecordLike(const TracedTensor& input, TracedGradients saved = {},
                          const TapeNodeOptions& options = {});

  // Gradient checkpointing as torch.utils.checkpoint does it without reentrance: segment(), but
  // what its operations save is let go. In backward the first of them that wants it has the segment
  // run again, until as much has been saved; then each takes its own. What the segment captures is
  // held until the last of them has run. Without recording: segment() alone. Segments do not nest.
  // An operation of a segment that saves only what is there before it runs must record itself
  // before it allocates: torch leaves the second run there.
  TracedTensor Checkpointed(std::function<TracedTensor()> segment);

  // Runs the tape from `root`, which has one element, as backward() does, and forgets it. The
  // root's gradient is one element too. `stops`: numbers of nodes, descending; the result: for
  // each, the number of events when all nodes from it on have run.
  std::vector<size_t> Backward(TracedTensor root, std::span<const int32_t> stops = {});

  // Inside a node's backward: what follows is the engine's doing, which makes gradients fit their
  // inputs (sums over repetitions, casts) when the node has returned. A node of a checkpointed
  // segment holds nothing saved any more then, others still do.
  void LeaveKernel();

  // Holds a leaf of the graph that is no parameter, or its gradient, until Backward has ended and
  // the caller lets go of the loss.
  void HoldByGraph(TracedStorage storage) { held_by_graph_.push_back(std::move(storage)); }

  // Runs the part of the tape from node `first` on, with `gradient` arriving at `root`; for
  // operations that run a piece of forward again (gradient checkpointing).
  void BackwardFrom(int32_t first, GradientEdge root, TracedStorage gradient);
  // Forgets the tape without running it: a forward whose result, with `root`, is thrown away.
  // Nodes end in torch's order: from the root on, the last edge first, each with its last user.
  void DropTape(GradientEdge root = {});

  int32_t NextNode() const { return static_cast<int32_t>(tape_.size()); }

  // While it lives, operations are recorded or not: without as in torch.no_grad; with, inside such
  // a scope, as in the second forward of gradient checkpointing.
  class GradMode {
   public:
    GradMode(StepTracer& tracer, bool recording)
        : tracer_(tracer), before_(std::exchange(tracer.recording_, recording)) {}
    ~GradMode() { tracer_.recording_ = before_; }
    GradMode(const GradMode&) = delete;
    GradMode& operator=(const GradMode&) = delete;

   private:
    StepTracer& tracer_;
    const bool before_;
  };

 private:
  void RunNode(TapeNode node);
  // Lets go of what a node saved, and of its uses of parameters.
  void DropNode(TapeNode& node);
  // The second run of a segment.
  void RunAgain(CheckpointedSegment& segment);
  void Push(const GradientEdge& edge, TracedStorage gradient);

  const GradientSums sums_;
  ParameterGradients gradients_;
  std::vector<TapeNode> tape_;
  std::vector<TracedStorage> kept_;
  std::vector<TracedStorage> held_by_graph_;
  std::shared_ptr<CheckpointedSegment> segment_;  // that runs first
  CheckpointedSegment* again_ = nullptr;          // that runs again
  TapeNode* running_ = nullptr;                   // whose backward runs
  bool recording_ = true;
};

}  // namespace hpo::memory
