// Tested by tests/memory/trace/step_tracer_test.cc.
#include "memory/ops/linear_ops.h"

#include <utility>

#include "common/base/bytes.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory::ops {
namespace {

// Source: torch 2.11, aten/src/ATen/native/cuda/Blas.cpp, addmm_out_cuda_impl.
void TouchProductWorkspace(TracedDevice& device, const TracedLinear& layer) {
  device.TouchWorkspace();
  if (layer.bias.has_value() && layer.in_features > 1 && layer.out_features > 1) {
    device.TouchBiasWorkspace();
  }
}

TracedTensor LinearAlone(TracedDevice& device, const TracedTensor& input, const TracedLinear& layer,
                         bool rows_are_flattened) {
  // Casts in torch's order: the last argument first. The bias is that of linear(), and the first
  // of addmm(), which is Conv1D's.
  const int64_t element_size = device.in_autocast() ? kHalfBytes : input.element_size;
  const auto cast_bias = [&] {
    return layer.bias.has_value() ? device.CastParameter(*layer.bias, element_size)
                                  : TracedTensor();
  };
  TracedTensor bias;
  if (!layer.transposed) bias = cast_bias();
  const TracedTensor weight = device.CastParameter(layer.weight, element_size);
  const TracedTensor x = CastForProduct(device, input);
  if (layer.transposed) bias = cast_bias();
  const int64_t rows = x.elements / layer.in_features;
  // A frozen weight's gradient needs no input; the input's gradient needs the weight.
  // They are freed in another order without a bias, which is another operation.
  const TracedStorage kept_input = weight.edge.IsWanted() ? x.storage : TracedStorage();
  const TracedStorage kept_weight = x.edge.IsWanted() ? weight.storage : TracedStorage();
  // Flattened, the input's gradient passes a view, so that it arrives last. Without a bias the
  // product is another operation.
  const bool x_arrives_last = rows_are_flattened && layer.bias.has_value();
  const size_t x_at = x_arrives_last ? 2 : 0;
  const size_t bias_at = x_arrives_last ? 0 : 1;
  const size_t weight_at = bias_at + 1;
  absl::InlinedVector<GradientEdge, 4> edges(3);
  edges[x_at] = x.edge;
  edges[bias_at] = bias.edge;
  edges[weight_at] = weight.edge;
  TracedGradients saved;
  saved.push_back(layer.bias.has_value() ? kept_input : kept_weight);
  saved.push_back(layer.bias.has_value() ? kept_weight : kept_input);
  const GradientEdge edge = device.Record(
      std::move(edges), std::move(saved),
      [&device, input_bytes = x.edge.IsWanted() ? x.bytes() : -1,
       weight_bytes = weight.edge.IsWanted() ? weight.bytes() : -1,
       bias_sum =
           Reduction{.rows = rows, .columns = layer.out_features, .element_size = x.element_size},
       bias_wanted = bias.edge.IsWanted(), x_at, bias_at, weight_at,
       weight_first = !layer.bias.has_value(), rows_are_flattened](auto&, const auto&) {
        TracedGradients gradients(3);
        const auto add_weight = [&] {  // the transposed product: a view
          if (weight_bytes < 0) return;
          gradients[weight_at] = device.Allocate(weight_bytes, MemoryClass::kGradients).AsView();
          device.TouchBackwardWorkspace();
        };
        if (weight_first) add_weight();
        if (input_bytes >= 0) {
          gradients[x_at] = device.Allocate(input_bytes);
          if (rows_are_flattened) gradients[x_at] = gradients[x_at].AsView();
          device.TouchBackwardWorkspace();
        }
        if (!weight_first) add_weight();
        if (bias_wanted) {
          gradients[bias_at] = Sum(device, bias_sum, MemoryClass::kGradients).AsView();
        }
        return gradients;
      });
  TracedTensor output = device.NewTensor(rows * layer.out_features, x.element_size);
  output.edge = edge;
  TouchProductWorkspace(device, layer);
  if (layer.transposed) bias = {};  // the first argument, so the first to go
  return output;
}

// ---- Weights in fewer bits: worker/trainer/models/layers/stored_weight.cc ---------------------

// The values of a stored weight; empty where they are the storage itself.
TracedStorage StoredValues(TracedDevice& device, const TracedLinear& layer, int64_t element_size) {
  const int64_t elements = layer.weight.elements;
  if (layer.stored == FrozenType::kBFloat16) {
    if (element_size == kHalfBytes && !device.float16()) return {};
    return device.Allocate(element_size * elements, MemoryClass::kTemporary);
  }
  const int64_t padded = RoundUp(Bytes{elements}, Bytes{kNf4Block}).count;
  TracedStorage values;
  {
    const TracedStorage codes = device.Allocate(kFloatBytes * padded / 2, MemoryClass::kTemporary);
    values = device.Allocate(kFloatBytes * padded, MemoryClass::kTemporary);
  }
  if (element_size == kFloatBytes) return values;
  return device.Allocate(element_size * elements, MemoryClass::kTemporary);
}

TracedTensor StoredLinear(TracedDevice& device, const TracedTensor& input,
                          const TracedLinear& layer, bool rows_are_flattened) {
  const int64_t element_size = device.in_autocast() ? kHalfBytes : input.element_size;
  const int64_t rows = input.elements / layer.in_features;
  TracedTensor output;
  {
    const StepTracer::GradMode no_grad(device.tracer(), false);
    const TracedStorage values = StoredValues(device, layer, element_size);
    TracedTensor bias;
    if (layer.bias.has_value()) bias = device.CastParameter(*layer.bias, element_size);
    const TracedTensor x = CastForProduct(device, input);
    device.TouchForwardWorkspace();
    output = device.NewTensor(rows * layer.out_features, element_size);
  }
  output.edge = device.Record(
      {input.edge}, {},
      [&device, layer, elements = input.elements, element_size, input_size = input.element_size,
       rows_are_flattened](auto&, const auto&) {
        device.TouchBackwardWorkspace();
        TracedStorage gradient;
        {
          const TracedStorage values = StoredValues(device, layer, element_size);
          gradient = device.Allocate(element_size * elements);
        }
        if (input_size != element_size) gradient = device.Allocate(input_size * elements);
        return OneGradient(rows_are_flattened ? gradient.AsView() : std::move(gradient));
      });
  return output;
}

// ---- Low-rank adapters --------------------------------------------------------------------------

// output + low times a number.
TracedTensor AddScaled(TracedDevice& device, const TracedTensor& output, const TracedTensor& low) {
  TracedTensor sum = device.NewTensor(output.elements, output.element_size);
  sum.edge = device.Record(
      {output.edge, low.edge}, {},
      [&device, bytes = low.bytes(), element_size = low.element_size](auto& incoming, const auto&) {
        TracedGradients gradients(2);
        const Number scale(device, element_size);
        gradients[1] = device.Allocate(bytes);
        gradients[0] = incoming[0];
        return gradients;
      });
  return sum;
}

TracedTensor AddAdapted(TracedDevice& device, TracedTensor output, const TracedTensor& input,
                        const TracedLinear& layer, bool rows_are_flattened) {
  const TracedAdapter& adapter = *layer.adapter;
  TracedTensor low =
      Linear(device, Dropout(device, input, device.training() ? adapter.dropout : 0.0),
             {.weight = adapter.a, .in_features = adapter.a.columns, .out_features = adapter.rank},
             rows_are_flattened);
  low = Linear(device, low,
               {.weight = adapter.b,
                .in_features = adapter.rank,
                .out_features = adapter.b.elements / adapter.rank},
               rows_are_flattened);
  if (layer.copies_gradient) low = Relayout(device, low, /*copies=*/false, /*copies_back=*/true);
  TracedTensor sum = AddScaled(device, output, low);
  low = {};
  output = {};
  return sum;
}

}  // namespace

TracedLinear MakeLinear(TracedDevice& device, int64_t in_features, int64_t out_features,
                        bool bias) {
  TracedLinear layer{.in_features = in_features, .out_features = out_features};
  layer.weight = device.Parameter(out_features, in_features);
  if (bias) layer.bias = device.Parameter(out_features);
  return layer;
}

TracedTensor Linear(TracedDevice& device, const TracedTensor& input, const TracedLinear& layer,
                    bool rows_are_flattened) {
  const bool is_stored = layer.stored != FrozenType::kFloat32;
  TracedTensor output = is_stored ? StoredLinear(device, input, layer, rows_are_flattened)
                                  : LinearAlone(device, input, layer, rows_are_flattened);
  if (layer.copies_gradient)
    output = Relayout(device, output, /*copies=*/false, /*copies_back=*/true);
  if (!layer.adapter.has_value()) return output;
  return AddAdapted(device, std::move(output), input, layer, rows_are_flattened);
}

}  // namespace hpo::memory::ops
