// Products with weights in fewer bits: worker/trainer/models/adapters/stored_weight.cc.
#include <utility>

#include "common/memory/trace/trace_ops.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kHalf = 2;

}  // namespace

TracedStorage TraceOps::StoredValues(const TracedLinear& layer, int64_t element_size) {
  const int64_t elements = layer.weight.elements;
  if (layer.stored == FrozenStorage::Type::kBFloat16) {
    if (element_size == kHalf && !float16_) return {};
    return tracer_.Allocate(element_size * elements, MemoryClass::kTemporary);
  }
  const int64_t padded = RoundUp(Bytes{elements}, Bytes{kNf4Block}).count;
  TracedStorage values;
  {
    const TracedStorage codes = tracer_.Allocate(kFloat * padded / 2, MemoryClass::kTemporary);
    values = tracer_.Allocate(kFloat * padded, MemoryClass::kTemporary);
  }
  if (element_size == kFloat) return values;
  return tracer_.Allocate(element_size * elements, MemoryClass::kTemporary);
}

TracedTensor TraceOps::StoredLinear(const TracedTensor& input, const TracedLinear& layer,
                                    bool rows_are_flattened) {
  const int64_t element_size = autocast_ ? kHalf : input.element_size;
  const int64_t rows = input.elements / layer.in_features;
  TracedTensor output;
  {
    const StepTracer::NoGrad no_grad(tracer_);
    const TracedStorage values = StoredValues(layer, element_size);
    TracedTensor bias;
    if (layer.bias.has_value()) bias = WeightFor(*layer.bias, element_size);
    const TracedTensor x = CastForProduct(input);
    TouchWorkspace(forward_workspace_);
    output = tracer_.NewTensor(rows * layer.out_features, element_size);
  }
  output.edge = tracer_.Record(
      {input.edge}, {},
      [this, layer, elements = input.elements, element_size, input_size = input.element_size,
       rows_are_flattened](auto&, const auto&) {
        TouchWorkspace(backward_workspace_);
        TracedStorage gradient;
        {
          const TracedStorage values = StoredValues(layer, element_size);
          gradient = tracer_.Allocate(element_size * elements);
        }
        if (input_size != element_size) gradient = tracer_.Allocate(input_size * elements);
        return OneGradient(rows_are_flattened ? gradient.AsView() : std::move(gradient));
      });
  return output;
}

}  // namespace hpo
