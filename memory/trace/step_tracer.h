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
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "memory/allocator/allocation_trace.h"

namespace hpo::memory {

class StepTracer;

// Of an element, by its type.
inline constexpr int64_t kFloatBytes = 4;
inline constexpr int64_t kHalfBytes = 2;
inline constexpr int64_t kIndexBytes = 8;
inline constexpr int64_t kIntBytes = 4;
inline constexpr int64_t kBoolBytes = 1;

// The memory of a tensor, shared by its views. Empty, or counted by its tracer, which outlives it.
class TracedStorage {
 public:
  TracedStorage() = default;
  TracedStorage(const TracedStorage& other);
  TracedStorage(TracedStorage&& other) noexcept;
  TracedStorage& operator=(TracedStorage other) noexcept;
  ~TracedStorage();

  explicit operator bool() const { return tracer_ != nullptr; }
  int64_t bytes() const;
  // No other holder.
  bool IsUnique() const;
  // The same memory as a view: torch sums nothing into one in place.
  TracedStorage AsView() const;
  bool is_view() const { return is_view_; }
  void Reset() { *this = TracedStorage(); }

 private:
  friend class StepTracer;
  TracedStorage(StepTracer* tracer, int32_t block) : tracer_(tracer), block_(block) {}

  StepTracer* tracer_ = nullptr;
  int32_t block_ = 0;
  bool is_view_ = false;
};

// Where a tensor's gradient goes: an output of a node of the tape, a parameter, or nowhere.
struct GradientEdge {
  int32_t node = -1;
  int32_t output = 0;
  int32_t parameter = -1;
  bool IsWanted() const { return node >= 0 || parameter >= 0; }
};

struct TracedTensor {
  TracedStorage storage;
  int64_t elements = 0;
  int64_t element_size = kFloatBytes;
  GradientEdge edge;

  int64_t bytes() const { return elements * element_size; }
};

// A parameter of the model; copies name the same one.
struct TracedParameter {
  int32_t index = -1;
  int64_t elements = 0;
  int64_t columns = 1;  // a matrix's; 1: a vector
  int64_t element_size = 4;
  bool trainable = true;

  int64_t bytes() const { return elements * element_size; }
  GradientEdge Edge() const {
    return trainable ? GradientEdge{.parameter = index} : GradientEdge{};
  }
};

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

class StepTracer {
 public:
  struct Options {
    // Gradients that meet are summed into the first where nobody else holds it and it is no view,
    // as on a device; else always into a new tensor, as FakeTensors are.
    bool sums_in_place = true;
  };

  StepTracer() = default;
  explicit StepTracer(const Options& options) : options_(options) {}
  ~StepTracer() { ending_ = true; }
  StepTracer(const StepTracer&) = delete;
  StepTracer& operator=(const StepTracer&) = delete;

  const AllocationTrace& trace() const { return trace_; }
  // What was traced so far, for a tracer that traces no more.
  AllocationTrace TakeTrace() { return std::move(trace_); }

  // ---- Memory ----

  // bytes >= 0; a tensor without elements holds no memory and makes no event.
  TracedStorage Allocate(int64_t bytes, MemoryClass memory_class = MemoryClass::kActivations);
  // Allocated, and freed before anything else happens.
  void Touch(int64_t bytes, MemoryClass memory_class = MemoryClass::kTemporary);
  TracedTensor NewTensor(int64_t elements, int64_t element_size = 4);

  // What follows belongs to `phase`.
  void EnterPhase(std::string phase);

  // ---- Parameters ----

  struct ParameterOptions {
    int64_t elements = 0;
    int64_t columns = 1;
    int64_t element_size = 4;
    bool trainable = true;
  };
  // Allocates the weight now; it lives as long as the tracer.
  TracedParameter AddParameter(const ParameterOptions& options);
  const std::vector<TracedParameter>& parameters() const { return parameters_; }
  bool HasGradient(const TracedParameter& parameter) const;
  // Frees every gradient, in the parameters' order.
  void ClearGradients();
  void ClearGradient(const TracedParameter& parameter);

  // Holds `storage` until the tracer ends: optimizer states, workspaces.
  void Keep(TracedStorage storage) { kept_.push_back(std::move(storage)); }

  // ---- Tape ----

  // Whether operations are recorded; false inside a NoGrad.
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

  // While it lives, gradients of parameters arrive as those of a backward of its own do:
  // they wait for no use of the parameter outside of it.
  class InnerBackward {
   public:
    explicit InnerBackward(StepTracer& tracer)
        : tracer_(tracer), uses_(tracer.uses_.size()), arriving_(tracer.arriving_.size()) {
      Swap();
    }
    ~InnerBackward() { Swap(); }
    InnerBackward(const InnerBackward&) = delete;
    InnerBackward& operator=(const InnerBackward&) = delete;

   private:
    void Swap() {
      std::swap(uses_, tracer_.uses_);
      std::swap(arriving_, tracer_.arriving_);
    }

    StepTracer& tracer_;
    std::vector<int32_t> uses_;
    std::vector<TracedStorage> arriving_;
  };
  int32_t NextNode() const { return static_cast<int32_t>(tape_.size()); }

  class NoGrad {
   public:
    explicit NoGrad(StepTracer& tracer) : tracer_(tracer), before_(tracer.recording_) {
      tracer.recording_ = false;
    }
    ~NoGrad() { tracer_.recording_ = before_; }
    NoGrad(const NoGrad&) = delete;
    NoGrad& operator=(const NoGrad&) = delete;

   private:
    StepTracer& tracer_;
    bool before_;
  };

  // Recording on inside a NoGrad: the second forward of gradient checkpointing.
  class EnableGrad {
   public:
    explicit EnableGrad(StepTracer& tracer) : tracer_(tracer), before_(tracer.recording_) {
      tracer.recording_ = true;
    }
    ~EnableGrad() { tracer_.recording_ = before_; }
    EnableGrad(const EnableGrad&) = delete;
    EnableGrad& operator=(const EnableGrad&) = delete;

   private:
    StepTracer& tracer_;
    bool before_;
  };

 private:
  friend class TracedStorage;

  struct CheckpointedSegment {
    std::function<TracedTensor()> run;
    size_t num_saving = 0;               // operations that save something
    std::vector<TracedGradients> saved;  // by such an operation, of the second run
  };

  struct Node {
    absl::InlinedVector<GradientEdge, 4> edges;
    TracedGradients saved;
    TracedGradients incoming;
    BackwardFunction backward;
    std::shared_ptr<CheckpointedSegment> segment;  // that `saved` comes from, at `saved_at`
    size_t saved_at = 0;
  };

  struct BlockCount {
    int64_t bytes = 0;
    int32_t holders = 0;
    MemoryClass memory_class = MemoryClass::kActivations;
  };

  void Release(int32_t block);
  void RunNode(Node node);
  // Lets go of what a node saved, and of its uses of parameters.
  void DropNode(Node& node);
  // The second run of a segment.
  void RunAgain(CheckpointedSegment& segment);
  void Push(const GradientEdge& edge, TracedStorage gradient);
  // One use of the edge's parameter is done with.
  void FinishUse(const GradientEdge& edge);
  void AccumulateInto(TracedStorage& sum, TracedStorage gradient, MemoryClass memory_class);

  Options options_;
  AllocationTrace trace_;
  std::vector<BlockCount> blocks_;
  std::vector<TracedParameter> parameters_;
  // By parameter: its gradient; the sum on its way there, complete when the uses on the tape are
  // done with.
  std::vector<TracedStorage> gradients_;
  std::vector<TracedStorage> arriving_;
  std::vector<int32_t> uses_;
  std::vector<Node> tape_;
  std::vector<TracedStorage> kept_;
  std::vector<TracedStorage> held_by_graph_;
  std::shared_ptr<CheckpointedSegment> segment_;  // that runs first
  CheckpointedSegment* again_ = nullptr;          // that runs again
  bool left_ = false;                             // which has saved enough: nothing is allocated
  Node* running_ = nullptr;                       // whose backward runs
  bool recording_ = true;
  bool ending_ = false;  // what the destructor lets go of is no event
};

}  // namespace hpo::memory
