// The device that the operations of a step run on, as a StepTracer runs them: its kernels, the
// autocast that they run under, the workspaces that its libraries keep, and the type that
// parameters are made in. The operations are free functions that take it first: tensor_ops.h,
// linear_ops.h, layer_ops.h, attention_ops.h, loss_ops.h and model_ops.h.
//
// What holds for all of them. Each says what a torch operation allocates in forward, keeps for
// backward, and allocates in backward. Sizes: `rows` is the product of all dimensions but the last.
// Tensors are float32 unless their element size says otherwise; under autocast matrix products and
// attention run in 16 bits and norms, softmax and losses in float32, with torch's casts between
// them. The device outlives the tape. Not thread-safe.
// On a CPU every event is torch's: tests/worker/trainer/memory_trace_test.cc compares them.
// Source: torch 2.11's kernels (aten/src/ATen/native), backward formulas
// (tools/autograd/derivatives.yaml) and autocast lists (aten/src/ATen/autocast_mode.h).
#pragma once

#include <cstdint>
#include <utility>

#include "memory/trace/kernel_traits.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {

class TracedDevice {
 public:
  // `tracer` outlives it.
  TracedDevice(StepTracer& tracer, const KernelTraits& traits) : tracer_(tracer), traits_(traits) {}

  StepTracer& tracer() const { return tracer_; }
  const KernelTraits& traits() const { return traits_; }

  // ---- Memory and tape: the tracer's ----

  TracedStorage Allocate(int64_t bytes, MemoryClass memory_class = MemoryClass::kActivations) {
    return tracer_.Allocate(bytes, memory_class);
  }
  void Touch(int64_t bytes) { tracer_.Touch(bytes); }
  TracedTensor NewTensor(int64_t elements, int64_t element_size = 4) {
    return tracer_.NewTensor(elements, element_size);
  }
  GradientEdge Record(absl::InlinedVector<GradientEdge, 4>&& edges, TracedGradients&& saved,
                      BackwardFunction&& backward, const TapeNodeOptions& options = {}) {
    return tracer_.Record(std::move(edges), std::move(saved), std::move(backward), options);
  }
  GradientEdge RecordLike(const TracedTensor& input, TracedGradients&& saved = {}) {
    return tracer_.RecordLike(input, std::move(saved));
  }

  // ---- Parameters ----

  TracedParameter Parameter(int64_t rows, int64_t columns = 1);
  // Of parameters made from now on.
  void SetParameterType(int64_t element_size, bool trainable) {
    parameter_size_ = element_size;
    trainable_ = trainable;
  }
  void SetTrainable(bool trainable) { trainable_ = trainable; }
  // Whether our trainer's adapters drop out what goes into them.
  void SetTraining(bool training) { training_ = training; }
  bool training() const { return training_; }

  // ---- Autocast ----

  // Inside, matrix products and attention run in 16 bits; casts of weights are not cached
  // (worker/trainer/base/autocast.h).
  void EnterAutocast() { autocast_ = true; }
  void LeaveAutocast() { autocast_ = false; }
  bool in_autocast() const { return autocast_; }
  // Whether its 16 bits are float16; bfloat16 else.
  void SetFloat16(bool float16) { float16_ = float16; }
  bool float16() const { return float16_; }
  // A parameter as a product of `element_size` takes it: itself, or its cast.
  TracedTensor CastParameter(const TracedParameter& parameter, int64_t element_size);

  // ---- Workspaces ----

  // What the library of matrix products keeps for each thread from its first product on, forward's
  // and backward's, and for the first that adds a bias.
  void TouchForwardWorkspace() { TouchOnce(forward_workspace_, traits_.gemm_workspace); }
  void TouchBackwardWorkspace() { TouchOnce(backward_workspace_, traits_.gemm_workspace); }
  // Of the thread that runs.
  void TouchWorkspace() {
    tracer_.in_backward() ? TouchBackwardWorkspace() : TouchForwardWorkspace();
  }
  void TouchBiasWorkspace() {
    TouchOnce(tracer_.in_backward() ? backward_bias_workspace_ : bias_workspace_,
              traits_.bias_workspace);
  }
  // The device is warm: what libraries keep is there.
  void SetWarm() {
    forward_workspace_ = backward_workspace_ = true;
    bias_workspace_ = backward_bias_workspace_ = true;
  }

 private:
  void TouchOnce(bool& exists, int64_t workspace);

  StepTracer& tracer_;
  KernelTraits traits_;
  int64_t parameter_size_ = 4;
  bool trainable_ = true;
  bool training_ = true;
  bool autocast_ = false;
  bool float16_ = false;
  bool forward_workspace_ = false;
  bool backward_workspace_ = false;
  bool bias_workspace_ = false;
  bool backward_bias_workspace_ = false;
};

}  // namespace hpo::memory
