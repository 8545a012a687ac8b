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
};

// A recorded operation.
struct TapeNode {
  absl::InlinedVector<GradientEdge, 4> edges;
  TracedGradients saved;
  TracedGradients incoming;
  BackwardFunction backward;
};

class StepTracer : public TracedMemory {
 public:
  StepTracer() : gradients_(*this) {}
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
  bool in_backward() const { return running_; }

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

  // Runs the tape from `root`, which has one element, as backward() does, and forgets it. The
  // root's gradient is one element too. `stops`: numbers of nodes, descending; the result: for
  // each, the number of events when all nodes from it on have run.
  std::vector<size_t> Backward(TracedTensor root, std::span<const int32_t> stops = {});

  // Runs the part of the tape from node `first` on, with `gradient` arriving at `root`; for
  // operations that run a piece of forward again (gradient checkpointing).
  void BackwardFrom(int32_t first, GradientEdge root, TracedStorage gradient);
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
  void Push(const GradientEdge& edge, TracedStorage gradient);

  ParameterGradients gradients_;
  std::vector<TapeNode> tape_;
  std::vector<TracedStorage> kept_;
  bool running_ = false;  // a node's backward
  bool recording_ = true;
};

}  // namespace hpo::memory
