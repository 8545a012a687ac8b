#include "common/memory/trace/trace_ops.h"

#include <algorithm>
#include <utility>

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kIndex = 8;
constexpr int64_t kHalf = 2;
constexpr int64_t kNumber = 8;  // a double or an int64

}  // namespace

// ---- Parameters --------------------------------------------------------------------------------

TracedParameter TraceOps::Parameter(int64_t rows, int64_t columns) {
  return tracer_.AddParameter({.elements = rows * columns,
                               .columns = columns,
                               .element_size = parameter_size_,
                               .trainable = trainable_});
}

TracedLinear TraceOps::MakeLinear(int64_t in_features, int64_t out_features, bool bias) {
  TracedLinear layer{.in_features = in_features, .out_features = out_features};
  layer.weight = Parameter(out_features, in_features);
  if (bias) layer.bias = Parameter(out_features);
  return layer;
}

TracedNorm TraceOps::MakeNorm(int64_t width, bool bias) {
  TracedNorm norm{.width = width};
  norm.weight = Parameter(width);
  if (bias) norm.bias = Parameter(width);
  return norm;
}

// ---- Types -------------------------------------------------------------------------------------

void TraceOps::LeaveAutocast() {
  autocast_ = false;
  cast_weights_.clear();
}

TracedTensor TraceOps::Cast(const TracedTensor& input, int64_t element_size) {
  if (input.element_size == element_size) return input;
  TracedTensor output = tracer_.NewTensor(input.elements, element_size);
  output.edge = tracer_.RecordLike(input);
  return output;
}

TracedTensor TraceOps::CastForProduct(const TracedTensor& input) {
  return autocast_ ? Cast(input, kHalf) : input;
}

TracedTensor TraceOps::CastToFloat(const TracedTensor& input) {
  return autocast_ ? Cast(input, kFloat) : input;
}

TracedTensor TraceOps::WeightFor(const TracedParameter& parameter, int64_t element_size) {
  TracedTensor weight{.elements = parameter.elements,
                      .element_size = parameter.element_size,
                      .edge = parameter.Edge()};
  // What is stored in bfloat16 is cast for products in float16.
  const bool is_other_half = float16_ && parameter.element_size == kHalf;
  if (parameter.element_size == element_size && !is_other_half) return weight;
  const auto index = static_cast<size_t>(parameter.index);
  if (cast_weights_.size() <= index) cast_weights_.resize(index + 1);
  if (cast_weights_[index].storage) return cast_weights_[index];
  weight = tracer_.NewTensor(parameter.elements, element_size);
  weight.edge =
      tracer_.Record({parameter.Edge()}, {}, [this, bytes = parameter.bytes()](auto&, const auto&) {
        return OneGradient(tracer_.Allocate(bytes, MemoryClass::kGradients));
      });
  if (autocast_ && caches_weights_ && parameter.trainable) cast_weights_[index] = weight;
  return weight;
}

void TraceOps::TouchWorkspace(bool& exists) {
  if (exists || traits_.gemm_workspace == 0) return;
  exists = true;
  tracer_.Keep(tracer_.Allocate(traits_.gemm_workspace, MemoryClass::kWorkspaces));
}

// Source: torch 2.11, aten/src/ATen/native/cuda/Blas.cpp, addmm_out_cuda_impl.
void TraceOps::TouchProductWorkspace(const TracedLinear& layer) {
  const bool again = tracer_.in_backward();
  TouchWorkspace(again ? backward_workspace_ : forward_workspace_);
  const bool adds_bias = layer.bias.has_value() && layer.in_features > 1 && layer.out_features > 1;
  bool& exists = again ? backward_bias_workspace_ : bias_workspace_;
  if (!adds_bias || traits_.bias_workspace == 0 || exists) return;
  exists = true;
  tracer_.Keep(tracer_.Allocate(traits_.bias_workspace, MemoryClass::kWorkspaces));
}

TracedStorage TraceOps::Sum(const Reduction& reduction, MemoryClass result) {
  const int64_t results = reduction.over_rows ? reduction.columns : reduction.rows;
  TracedStorage sum = tracer_.Allocate(reduction.element_size * results, result);
  TouchReductionScratch(reduction);
  return sum;
}

void TraceOps::TouchReductionScratch(const Reduction& reduction) {
  const ReductionScratch scratch = ReductionScratchOf(reduction, traits_);
  TracedStorage sums;
  if (scratch.output_sums > 0) {
    sums = tracer_.Allocate(scratch.output_sums, MemoryClass::kTemporary);
  }
  if (scratch.partial_sums == 0) return;
  for (int64_t piece = 0; piece < scratch.pieces; ++piece) {
    const TracedStorage partial = tracer_.Allocate(scratch.partial_sums, MemoryClass::kTemporary);
    tracer_.Touch(scratch.semaphores);
  }
}

// ---- Layers ------------------------------------------------------------------------------------

TracedTensor TraceOps::Linear(const TracedTensor& input, const TracedLinear& layer,
                              bool rows_are_flattened) {
  const bool is_stored = layer.stored != FrozenStorage::Type::kFloat32;
  TracedTensor output = layer.by_bitsandbytes ? QuantizedLinear(input, layer)
                        : is_stored           ? StoredLinear(input, layer, rows_are_flattened)
                                              : LinearAlone(input, layer, rows_are_flattened);
  // Peft's defensive copy of what bitsandbytes gives.
  if (layer.by_bitsandbytes && layer.adapter.has_value()) output = Copy(output);
  if (layer.copies_gradient) output = Relayout(output, /*copies=*/false, /*copies_back=*/true);
  if (!layer.adapter.has_value()) return output;
  return AddAdapted(std::move(output), input, layer, rows_are_flattened);
}

TracedTensor TraceOps::LinearAlone(const TracedTensor& input, const TracedLinear& layer,
                                   bool rows_are_flattened) {
  // Casts in torch's order: the last argument first. The bias is that of linear(), and the first
  // of addmm(), which is Conv1D's.
  const int64_t element_size = autocast_ ? kHalf : input.element_size;
  const auto cast_bias = [&] {
    return layer.bias.has_value() ? WeightFor(*layer.bias, element_size) : TracedTensor();
  };
  TracedTensor bias;
  if (!layer.transposed) bias = cast_bias();
  const TracedTensor weight = WeightFor(layer.weight, element_size);
  const TracedTensor x = CastForProduct(input);
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
  const GradientEdge edge = tracer_.Record(
      std::move(edges), std::move(saved),
      [this, input_bytes = x.edge.IsWanted() ? x.bytes() : -1,
       weight_bytes = weight.edge.IsWanted() ? weight.bytes() : -1,
       bias_sum =
           Reduction{.rows = rows, .columns = layer.out_features, .element_size = x.element_size},
       bias_wanted = bias.edge.IsWanted(), x_at, bias_at, weight_at,
       weight_first = !layer.bias.has_value(), rows_are_flattened](auto&, const auto&) {
        TracedGradients gradients(3);
        const auto add_weight = [&] {  // the transposed product: a view
          if (weight_bytes < 0) return;
          gradients[weight_at] = tracer_.Allocate(weight_bytes, MemoryClass::kGradients).AsView();
          TouchWorkspace(backward_workspace_);
        };
        if (weight_first) add_weight();
        if (input_bytes >= 0) {
          gradients[x_at] = tracer_.Allocate(input_bytes);
          if (rows_are_flattened) gradients[x_at] = gradients[x_at].AsView();
          TouchWorkspace(backward_workspace_);
        }
        if (!weight_first) add_weight();
        if (bias_wanted) {
          tracer_.LeaveKernel();
          gradients[bias_at] = Sum(bias_sum, MemoryClass::kGradients).AsView();
        }
        return gradients;
      },
      {.saves_others = true});
  TracedTensor output = tracer_.NewTensor(rows * layer.out_features, x.element_size);
  output.edge = edge;
  TouchProductWorkspace(layer);
  if (layer.transposed) bias = {};  // the first argument, so the first to go
  return output;
}

TracedTensor TraceOps::LayerNorm(const TracedTensor& input, const TracedNorm& norm) {
  // Autocast of a CPU leaves it alone.
  const TracedTensor x = traits_.cpu ? input : CastToFloat(input);
  const int64_t rows = x.elements / norm.width;
  TracedTensor output = tracer_.NewTensor(x.elements, x.element_size);
  const bool has_bias = norm.bias.has_value();
  TracedStorage mean;
  if (has_bias) mean = tracer_.Allocate(kFloat * rows);
  TracedStorage deviation = tracer_.Allocate(kFloat * rows);
  const GradientEdge bias_edge = has_bias ? norm.bias->Edge() : GradientEdge{};
  output.edge = tracer_.Record(
      {x.edge, norm.weight.Edge(), bias_edge}, {x.storage, mean, deviation},
      [this, bytes = x.bytes(), wanted = x.edge.IsWanted(), trains = norm.weight.trainable,
       weight_bytes = norm.weight.bytes(), row_bytes = norm.width * x.element_size, has_bias,
       copies = norm.copies_gradient](auto&, const auto&) {
        TracedGradients gradients(3);
        if (wanted) gradients[0] = tracer_.Allocate(bytes);
        if (trains) gradients[1] = tracer_.Allocate(weight_bytes, MemoryClass::kGradients);
        if (trains && has_bias) {
          gradients[2] = tracer_.Allocate(weight_bytes, MemoryClass::kGradients);
        }
        if (copies) tracer_.Touch(bytes);
        // Partial sums of the two of a thread (CPU).
        if (traits_.cpu && trains) tracer_.Touch(2 * traits_.threads_with_buffers * row_bytes);
        return gradients;
      });
  mean.Reset();
  return output;
}

TracedTensor TraceOps::RmsNorm(const TracedTensor& input, const TracedNorm& norm) {
  return traits_.cpu ? CpuRmsNorm(input, norm) : LayerNorm(input, norm);
}

TracedTensor TraceOps::Dropout(const TracedTensor& input, double probability) {
  if (probability == 0.0) return input;
  const TracedStorage mask = tracer_.Allocate(input.elements);
  TracedTensor output = tracer_.NewTensor(input.elements, input.element_size);
  output.edge = tracer_.RecordLike(input, {mask});
  return output;
}

TracedTensor TraceOps::Activate(const TracedTensor& input, Activation activation) {
  TracedTensor output = tracer_.NewTensor(input.elements, input.element_size);
  const bool keeps_output = activation == Activation::kRelu || activation == Activation::kTanh;
  output.edge = tracer_.RecordLike(input, {keeps_output ? output.storage : input.storage});
  return output;
}

TracedTensor TraceOps::Add(const TracedTensor& a, const TracedTensor& b) {
  TracedStorage widened;  // a CPU's kernel wants one type
  if (traits_.cpu && a.element_size != b.element_size) {
    widened = tracer_.Allocate(a.elements * std::max(a.element_size, b.element_size),
                               MemoryClass::kTemporary);
  }
  TracedTensor output = tracer_.NewTensor(a.elements, std::max(a.element_size, b.element_size));
  // A gradient of another type is converted, where somebody wants it.
  const auto converts_to = [&output](const TracedTensor& input) {
    return input.edge.IsWanted() && input.element_size != output.element_size ? input.bytes() : 0;
  };
  output.edge = tracer_.Record(
      {a.edge, b.edge}, {},
      [this, a_bytes = converts_to(a), b_bytes = converts_to(b)](auto& incoming, const auto&) {
        TracedGradients gradients(2);
        gradients[0] = a_bytes > 0 ? tracer_.Allocate(a_bytes) : incoming[0];
        gradients[1] = b_bytes > 0 ? tracer_.Allocate(b_bytes) : incoming[0];
        return gradients;
      });
  return output;
}

TracedTensor TraceOps::Multiply(const TracedTensor& a, const TracedTensor& b) {
  TracedTensor output = tracer_.NewTensor(a.elements, std::max(a.element_size, b.element_size));
  const auto wanted = [](const TracedTensor& input) {
    return input.edge.IsWanted() ? input.bytes() : -1;
  };
  output.edge = tracer_.Record(
      {a.edge, b.edge}, {b.storage, a.storage},
      [this, bytes = output.bytes(), a_bytes = wanted(a), b_bytes = wanted(b)](auto&, const auto&) {
        TracedGradients gradients(2);
        if (b_bytes >= 0) gradients[1] = tracer_.Allocate(bytes);
        if (a_bytes >= 0) gradients[0] = tracer_.Allocate(bytes);
        // Products have the wider type; each is converted to its input's.
        tracer_.LeaveKernel();
        if (a_bytes >= 0 && a_bytes < bytes) gradients[0] = tracer_.Allocate(a_bytes);
        if (b_bytes >= 0 && b_bytes < bytes) gradients[1] = tracer_.Allocate(b_bytes);
        return gradients;
      });
  return output;
}

TracedTensor TraceOps::AddRepeated(const TracedTensor& a, const TracedTensor& b) {
  TracedTensor output = tracer_.NewTensor(a.elements, a.element_size);
  output.edge = tracer_.Record(
      {a.edge, b.edge}, {},
      [this, wanted = b.edge.IsWanted(),
       repetitions = Reduction{.rows = a.elements / b.elements,
                               .columns = b.elements,
                               .element_size = a.element_size}](auto& incoming, const auto&) {
        TracedGradients gradients(2);
        gradients[0] = incoming[0];
        if (wanted) gradients[1] = Sum(repetitions, MemoryClass::kActivations);
        return gradients;
      });
  return output;
}

TracedTensor TraceOps::AddBroadcast(const TracedTensor& input, const TracedParameter& parameter) {
  TracedTensor output = tracer_.NewTensor(input.elements, input.element_size);
  output.edge = tracer_.Record(
      {input.edge, parameter.Edge()}, {},
      [this, rows = Reduction{.rows = input.elements / parameter.elements,
                              .columns = parameter.elements,
                              .element_size = input.element_size}](auto& incoming, const auto&) {
        TracedGradients gradients(2);
        gradients[0] = incoming[0];
        gradients[1] = Sum(rows, MemoryClass::kGradients);
        return gradients;
      });
  return output;
}

TracedTensor TraceOps::Copy(const TracedTensor& input, bool copies_back) {
  return Relayout(input, /*copies=*/true, copies_back);
}

TracedTensor TraceOps::Relayout(const TracedTensor& input, bool copies, bool copies_back) {
  TracedTensor output = copies ? tracer_.NewTensor(input.elements, input.element_size) : input;
  output.edge = tracer_.Record(
      {input.edge}, {}, [this, copies_back, bytes = input.bytes()](auto& incoming, const auto&) {
        return OneGradient(copies_back ? tracer_.Allocate(bytes) : incoming[0].AsView());
      });
  return output;
}

TraceOps::Number::Number(TraceOps& ops, int64_t element_size) {
  if (!ops.traits_.cpu) return;
  as_given_ = ops.tracer_.Allocate(kNumber, MemoryClass::kTemporary);
  if (element_size > 0) converted_ = ops.tracer_.Allocate(element_size, MemoryClass::kTemporary);
}

TracedTensor TraceOps::Scaled(TracedTensor x, bool in_place) {
  const Number number(*this, x.element_size);
  if (!in_place) x.storage = tracer_.Allocate(x.bytes());
  x.edge = tracer_.Record(
      {x.edge}, {}, [this, bytes = x.bytes(), element_size = x.element_size](auto&, const auto&) {
        const Number factor(*this, element_size);
        return OneGradient(tracer_.Allocate(bytes));
      });
  return x;
}

TracedTensor TraceOps::Select(const TracedTensor& input, int64_t parts) {
  TracedTensor view = input;
  view.elements = input.elements / parts;
  view.edge = tracer_.RecordLike(input);
  return view;
}

TracedTensor TraceOps::Mean(const TracedTensor& input, int64_t result_elements) {
  TracedTensor output = tracer_.NewTensor(result_elements, input.element_size);
  output.edge = tracer_.RecordLike(input);
  return output;
}

}  // namespace hpo
