// Low-rank adapters beside a linear layer: ours, and as peft runs them.
#include <utility>

#include "common/memory/trace/trace_ops.h"

namespace hpo {

TracedTensor TraceOps::AddAdapted(TracedTensor output, const TracedTensor& input,
                                  const TracedLinear& layer, bool rows_are_flattened) {
  const TracedAdapter& adapter = *layer.adapter;
  if (adapter.as_peft) return AddPeftAdapted(std::move(output), input, adapter);
  TracedTensor low =
      Linear(Dropout(input, training_ ? adapter.dropout : 0.0),
             {.weight = adapter.a, .in_features = adapter.a.columns, .out_features = adapter.rank},
             rows_are_flattened);
  low = Linear(low,
               {.weight = adapter.b,
                .in_features = adapter.rank,
                .out_features = adapter.b.elements / adapter.rank},
               rows_are_flattened);
  if (layer.copies_gradient) low = Relayout(low, /*copies=*/false, /*copies_back=*/true);
  TracedTensor sum = AddScaled(output, low);
  low = {};
  output = {};
  return sum;
}

TracedTensor TraceOps::AddScaled(const TracedTensor& output, const TracedTensor& low) {
  TracedTensor sum = tracer_.NewTensor(output.elements, output.element_size);
  sum.edge = tracer_.Record(
      {output.edge, low.edge}, {},
      [this, bytes = low.bytes(), element_size = low.element_size](auto& incoming, const auto&) {
        TracedGradients gradients(2);
        const Number scale(*this, element_size);
        gradients[1] = tracer_.Allocate(bytes);
        gradients[0] = incoming[0];
        return gradients;
      });
  return sum;
}

// The adapter's type is its own; the sum is the layer's again.
TracedTensor TraceOps::AddPeftAdapted(TracedTensor output, const TracedTensor& input,
                                      const TracedAdapter& adapter) {
  const int64_t element_size = output.element_size;
  const TracedTensor x = Cast(input, adapter.a.element_size);
  TracedTensor low =
      Linear(Dropout(x, adapter.dropout),
             {.weight = adapter.a, .in_features = adapter.a.columns, .out_features = adapter.rank});
  TracedTensor added = Linear(low, {.weight = adapter.b,
                                    .in_features = adapter.rank,
                                    .out_features = adapter.b.elements / adapter.rank});
  low = {};
  added = Scale(added);
  output = Add(output, added);
  added = {};
  return Cast(output, element_size);
}

}  // namespace hpo
