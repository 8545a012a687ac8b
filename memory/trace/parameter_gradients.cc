#include "memory/trace/parameter_gradients.h"

#include <algorithm>

namespace hpo::memory {

void AccumulateInto(TracedMemory& memory, TracedStorage& sum, TracedStorage gradient,
                    MemoryClass memory_class) {
  if (!sum) {
    sum = std::move(gradient);
  } else if (!sum.IsUnique() || sum.is_view()) {
    // A view may stand for more than it holds, repeated.
    sum = memory.Allocate(std::max(sum.bytes(), gradient.bytes()), memory_class);
  }
}

TracedParameter ParameterGradients::Add(TracedParameter parameter) {
  parameter.index = static_cast<int32_t>(parameters_.size());
  parameters_.push_back(parameter);
  gradients_.emplace_back();
  arriving_.emplace_back();
  uses_.push_back(0);
  return parameter;
}

bool ParameterGradients::Has(const TracedParameter& parameter) const {
  return static_cast<bool>(gradients_[static_cast<size_t>(parameter.index)]);
}

void ParameterGradients::Clear(const TracedParameter& parameter) {
  gradients_[static_cast<size_t>(parameter.index)].Reset();
}

void ParameterGradients::BeginUse(const GradientEdge& edge) {
  if (edge.parameter >= 0) ++uses_[static_cast<size_t>(edge.parameter)];
}

void ParameterGradients::Arrive(const GradientEdge& edge, TracedStorage gradient) {
  if (edge.parameter < 0) return;
  AccumulateInto(memory_, arriving_[static_cast<size_t>(edge.parameter)], std::move(gradient),
                 MemoryClass::kGradients);
}

void ParameterGradients::FinishUse(const GradientEdge& edge) {
  if (edge.parameter < 0) return;
  const auto index = static_cast<size_t>(edge.parameter);
  if (--uses_[index] > 0 || !arriving_[index]) return;
  TracedStorage arrived = std::move(arriving_[index]);
  if (gradients_[index]) return;  // added in place
  // A parameter owns its gradient: one that others hold is copied.
  if (!arrived.IsUnique()) arrived = memory_.Allocate(arrived.bytes(), MemoryClass::kGradients);
  gradients_[index] = std::move(arrived);
}

}  // namespace hpo::memory
