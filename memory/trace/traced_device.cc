#include "memory/trace/traced_device.h"

#include "memory/trace/step_tracer.h"

namespace hpo::memory {
TracedParameter TracedDevice::Parameter(int64_t rows, int64_t columns) {
  return tracer_.AddParameter({.elements = rows * columns,
                               .columns = columns,
                               .element_size = parameter_size_,
                               .trainable = trainable_});
}

TracedTensor TracedDevice::CastParameter(const TracedParameter& parameter, int64_t element_size) {
  TracedTensor weight{.elements = parameter.elements,
                      .element_size = parameter.element_size,
                      .edge = parameter.Edge()};
  // What is stored in bfloat16 is cast for products in float16.
  const bool is_other_half = float16_ && parameter.element_size == kHalfBytes;
  if (parameter.element_size == element_size && !is_other_half) return weight;
  weight = tracer_.NewTensor(parameter.elements, element_size);
  weight.edge =
      tracer_.Record({parameter.Edge()}, {}, [this, bytes = parameter.bytes()](auto&, const auto&) {
        return OneGradient(tracer_.Allocate(bytes, MemoryClass::kGradients));
      });
  return weight;
}

void TracedDevice::TouchOnce(bool& exists, int64_t workspace) {
  if (exists || workspace == 0) return;
  exists = true;
  tracer_.Keep(tracer_.Allocate(workspace, MemoryClass::kWorkspaces));
}

}  // namespace hpo::memory
