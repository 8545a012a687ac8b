// Tested by tests/memory/described_step_test.cc.
#include "memory/offline/described_optimizer.h"

#include <algorithm>
#include <utility>

#include "memory/ops/reduction_scratch.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {
DescribedOptimizer::DescribedOptimizer(StepTracer& tracer, StepOptimizer kind,
                                       std::vector<TracedParameter> parameters)
    : tracer_(tracer), kind_(kind), parameters_(std::move(parameters)) {}

void DescribedOptimizer::ClearGradients() {
  for (const TracedParameter& parameter : parameters_) tracer_.gradients().Clear(parameter);
}

// The norms of all gradients, made in pieces; their norm; the factor. The scaling is in place.
void DescribedOptimizer::Clip() {
  int64_t most_elements = 0;
  for (const TracedParameter& parameter : parameters_) {
    most_elements = std::max(most_elements, parameter.elements);
  }
  const auto num_norms = static_cast<int64_t>(parameters_.size());
  std::vector<TracedStorage> norms;
  {
    const TracedStorage partial = Temporary(NormsOfChunks(num_norms, most_elements).count);
    for (int64_t i = 0; i < num_norms; ++i) norms.push_back(Temporary(kFloatBytes));
  }
  TracedStorage norm;
  {
    const TracedStorage stacked = Temporary(kFloatBytes * num_norms);
    norm = Temporary(kFloatBytes);
  }
  while (!norms.empty()) norms.pop_back();
  TracedStorage factor;
  {
    const TracedStorage increased = Temporary(kFloatBytes);
    const TracedStorage inverse = Temporary(kFloatBytes);
    factor = Temporary(kFloatBytes);
  }
  const TracedStorage clamped = Temporary(kFloatBytes);
  factor.Reset();
}

void DescribedOptimizer::Step() {
  switch (kind_) {
    case StepOptimizer::kNone:
    case StepOptimizer::kSgd:
      return;
    case StepOptimizer::kSgdMomentum:
      MakeStates(1);
      return;
    case StepOptimizer::kAdamFused:
      MakeStates(2);
      return;
    case StepOptimizer::kAdamForeach:
      MakeStates(2);
      return AllSquareRoots();
    case StepOptimizer::kAdamLoop:
      MakeStates(2);
      return EachDenominator();
  }
}

TracedStorage DescribedOptimizer::Temporary(int64_t bytes) {
  return tracer_.Allocate(bytes, MemoryClass::kTemporary);
}

void DescribedOptimizer::MakeStates(int per_parameter) {
  if (has_states_) return;
  has_states_ = true;
  for (const TracedParameter& parameter : parameters_) {
    if (kind_ == StepOptimizer::kAdamFused) {
      tracer_.Keep(tracer_.Allocate(kFloatBytes, MemoryClass::kOptimizer));
    }
    for (int i = 0; i < per_parameter; ++i) {
      tracer_.Keep(tracer_.Allocate(parameter.bytes(), MemoryClass::kOptimizer));
    }
  }
}

// A list of Python, which ends from its end on.
void DescribedOptimizer::AllSquareRoots() {
  std::vector<TracedStorage> roots;
  for (const TracedParameter& parameter : parameters_) {
    roots.push_back(Temporary(parameter.bytes()));
  }
  while (!roots.empty()) roots.pop_back();
}

// Each is the loop's variable until the next one is made.
void DescribedOptimizer::EachDenominator() {
  TracedStorage denominator;
  for (const TracedParameter& parameter : parameters_) {
    TracedStorage root = Temporary(parameter.bytes());
    TracedStorage next = Temporary(parameter.bytes());
    root.Reset();
    denominator = std::move(next);
  }
}

}  // namespace hpo::memory
