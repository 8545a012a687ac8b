// Products with frozen weights in NF4 as bitsandbytes runs them: Linear4bit's forward, and
// MatMul4Bit's backward. Source: bitsandbytes 0.48, nn/modules.py, autograd/_functions.py and
// functional.py (dequantize_4bit); nothing compares it with a run.
#include <utility>

#include "common/memory/allocator/divide_up.h"
#include "common/memory/trace/trace_ops.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kHalf = 2;

}  // namespace

// The blocks' scales in float32, then the values in the 16 bits that they were quantised from.
TracedStorage TraceOps::DequantizedValues(const TracedLinear& layer, int64_t element_size) {
  const int64_t elements = layer.weight.elements;
  TracedStorage values;
  {
    const TracedStorage scales =
        tracer_.Allocate(kFloat * DivideUp(elements, kNf4Block), MemoryClass::kTemporary);
    values = tracer_.Allocate(kHalf * elements, MemoryClass::kTemporary);
  }
  if (element_size == kHalf) return values;
  return tracer_.Allocate(element_size * elements, MemoryClass::kTemporary);
}

// Neither the input nor the values are kept: the weight has no gradient, and backward makes its
// values again. The result has the input's type.
TracedTensor TraceOps::QuantizedLinear(const TracedTensor& input, const TracedLinear& layer) {
  const int64_t element_size = autocast_ ? kHalf : input.element_size;
  TracedTensor x = Cast(input, element_size);
  TracedTensor output;
  {
    const StepTracer::NoGrad no_grad(tracer_);
    const TracedStorage values = DequantizedValues(layer, element_size);
    TouchWorkspace(forward_workspace_);
    output = tracer_.NewTensor(x.elements / layer.in_features * layer.out_features, element_size);
  }
  output.edge = tracer_.Record(
      {x.edge}, {}, [this, layer, bytes = x.bytes(), element_size](auto&, const auto&) {
        TouchWorkspace(backward_workspace_);
        const TracedStorage values = DequantizedValues(layer, element_size);
        return OneGradient(tracer_.Allocate(bytes));
      });
  x = {};
  return Cast(output, input.element_size);
}

}  // namespace hpo
