// The parameters of a traced model and their gradients, as torch's AccumulateGrad keeps them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "memory/allocator/allocation_trace.h"
#include "memory/trace/traced_memory.h"

namespace hpo::memory {

// A parameter of the model; copies name the same one.
struct TracedParameter {
  int32_t index = -1;
  int64_t elements = 0;
  int64_t columns = 1;                 // a matrix's; 1: a vector
  int64_t element_size = kFloatBytes;  // bytes
  bool trainable = true;

  int64_t bytes() const { return elements * element_size; }
  GradientEdge Edge() const {
    return trainable ? GradientEdge{.parameter = index} : GradientEdge{};
  }
};

// Adds a gradient to those that have arrived: the first is taken as it is, the second is added into
// it where nobody else holds it and it is no view, else their sum is a new tensor.
void AccumulateInto(TracedMemory& memory, TracedStorage& sum, TracedStorage gradient,
                    MemoryClass memory_class);

// Not thread-safe. `memory` outlives this object.
class ParameterGradients {
 public:
  explicit ParameterGradients(TracedMemory& memory) : memory_(memory) {}

  // Gives the parameter its number.
  TracedParameter Add(TracedParameter parameter);
  const std::vector<TracedParameter>& parameters() const { return parameters_; }
  bool Has(const TracedParameter& parameter) const;
  void Clear(const TracedParameter& parameter);

  // What happens to the edge's parameter on the tape: it is used once more; a gradient arrives for
  // a use; a use is finished. A gradient is complete when all uses are finished. These calls do
  // nothing for an edge without a parameter.
  void BeginUse(const GradientEdge& edge);
  void Arrive(const GradientEdge& edge, TracedStorage gradient);
  void FinishUse(const GradientEdge& edge);

  // While it lives, gradients arrive as those of a backward of its own do: they wait for no use of
  // the parameter outside of it.
  class InnerBackward {
   public:
    explicit InnerBackward(ParameterGradients& gradients)
        : gradients_(gradients),
          uses_(gradients.uses_.size()),
          arriving_(gradients.arriving_.size()) {
      Swap();
    }
    ~InnerBackward() { Swap(); }
    InnerBackward(const InnerBackward&) = delete;
    InnerBackward& operator=(const InnerBackward&) = delete;

   private:
    void Swap() {
      std::swap(uses_, gradients_.uses_);
      std::swap(arriving_, gradients_.arriving_);
    }

    ParameterGradients& gradients_;
    std::vector<int32_t> uses_;
    std::vector<TracedStorage> arriving_;
  };

 private:
  TracedMemory& memory_;
  std::vector<TracedParameter> parameters_;
  // By parameter: its gradient; the sum on its way there; the uses that are not done with.
  std::vector<TracedStorage> gradients_;
  std::vector<TracedStorage> arriving_;
  std::vector<int32_t> uses_;
};

}  // namespace hpo::memory
