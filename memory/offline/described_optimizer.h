// What a described step's optimizer allocates: torch.optim's, not our trainer's. Event by event:
// tests/memory/described_step_events_test.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/offline/step_description.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {

class DescribedOptimizer {
 public:
  // `parameters`: those that are trained, in the order of torch's parameters(). `tracer` outlives
  // it.
  DescribedOptimizer(StepTracer& tracer, StepOptimizer kind,
                     std::vector<TracedParameter> parameters);

  // Frees the gradients.
  void ClearGradients();
  // torch.nn.utils.clip_grad_norm_.
  void Clip();
  // The first makes the states.
  void Step();

 private:
  TracedStorage Temporary(int64_t bytes);
  void MakeStates(int per_parameter);
  void AllSquareRoots();
  void EachDenominator();

  StepTracer& tracer_;
  StepOptimizer kind_;
  std::vector<TracedParameter> parameters_;
  bool has_states_ = false;
};

}  // namespace hpo::memory
