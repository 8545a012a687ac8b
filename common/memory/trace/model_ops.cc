#include "common/memory/trace/model_ops.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"

namespace hpo {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kHalf = 2;
constexpr int64_t kIndex = 8;
// Two floats for each byte of codes.
constexpr int64_t kNf4TableBytes = 256 * 2 * kFloat;
// The efficient kernel reads its mask in rows of a multiple of this.
constexpr int64_t kMaskAlignment = 8;
constexpr char kWrittenGelu[] = "gelu_new";

}  // namespace

TracedStorage ModelOps::Plain(int64_t elements, int64_t element_size) {
  return tracer().Allocate(elements * element_size);
}

TracedStorage ModelOps::Range(int64_t elements) {
  const TracedStorage range = Plain(elements, kIndex);
  return Plain(elements, kIndex);  // plus the number of past tokens
}

TracedStorage ModelOps::AttentionBias(int64_t rows, int64_t tokens, const TracedTensor& query) {
  const int64_t padded = (tokens + kMaskAlignment - 1) / kMaskAlignment * kMaskAlignment;
  TracedStorage bias = Plain(rows * tokens * tokens, query.element_size);
  if (padded != tokens) bias = Plain(rows * tokens * padded, query.element_size);
  return bias;
}

TracedTensor ModelOps::WordEmbedding(const TracedStorage& ids, int64_t tokens,
                                     const TracedParameter& table, int64_t width,
                                     bool wants_gradient) {
  TracedTensor output = ops_.Embedding(ids, tokens, table, width);
  if (!wants_gradient || output.edge.IsWanted()) return output;
  output.edge = tracer().Record({}, {output.storage},
                                [this](auto& incoming, const auto& saved) {
                                  tracer().HoldByGraph(saved[0]);
                                  tracer().HoldByGraph(std::move(incoming[0]));
                                  return TracedGradients();
                                },
                                {.has_parameters = true});
  return output;
}

TracedTensor ModelOps::View(const TracedTensor& input) {
  TracedTensor output = input;
  output.edge = tracer().Record({input.edge}, {}, [](auto& incoming, const auto&) {
    return OneGradient(std::move(incoming[0]));
  });
  return output;
}

TracedTensor ModelOps::MatrixProduct(const TracedTensor& left, const TracedTensor& right,
                                     int64_t elements) {
  const TracedTensor a = ops_.CastForProduct(left);
  const TracedTensor b = ops_.CastForProduct(right);
  TracedTensor output = tracer().NewTensor(elements, a.element_size);
  output.edge = tracer().Record({a.edge, b.edge},
                                {b.edge.IsWanted() ? a.storage : TracedStorage(),
                                 a.edge.IsWanted() ? b.storage : TracedStorage()},
                                [this, a_bytes = a.edge.IsWanted() ? a.bytes() : -1,
                                 b_bytes = b.edge.IsWanted() ? b.bytes() : -1](auto&, const auto&) {
                                  TracedGradients gradients(2);
                                  if (b_bytes >= 0) gradients[1] = tracer().Allocate(b_bytes);
                                  if (a_bytes >= 0) gradients[0] = tracer().Allocate(a_bytes);
                                  return gradients;
                                });
  return output;
}

TracedTensor ModelOps::MultiplyBy(const TracedTensor& input, const TracedStorage& factor,
                                  int64_t factor_element_size) {
  TracedStorage widened;  // a CPU's kernel wants one type
  if (ops_.traits().cpu && input.element_size < factor_element_size) {
    widened = tracer().Allocate(input.elements * factor_element_size, MemoryClass::kTemporary);
  }
  TracedTensor output =
      tracer().NewTensor(input.elements, std::max(input.element_size, factor_element_size));
  output.edge = tracer().Record(
      {input.edge}, {factor},
      [this, bytes = output.bytes(), input_bytes = input.bytes()](auto&, const auto&) {
        TracedStorage gradient = tracer().Allocate(bytes);
        tracer().LeaveKernel();
        if (input_bytes < bytes) gradient = tracer().Allocate(input_bytes);
        return OneGradient(std::move(gradient));
      });
  return output;
}

// Kept and allocated as a product with the mask is.
TracedTensor ModelOps::MaskedFill(const TracedTensor& input, const TracedStorage& mask) {
  return MultiplyBy(input, mask);
}

TracedTensor ModelOps::MaskedFillInPlace(const TracedTensor& input, const TracedStorage& mask) {
  TracedTensor output = input;
  output.edge = tracer().RecordLike(input, {mask});
  return output;
}

TracedTensor ModelOps::Convolution(const TracedTensor& input, const TracedParameter& weight,
                                   const TracedParameter& bias) {
  TracedTensor output = tracer().NewTensor(input.elements, input.element_size);
  output.edge =
      tracer().Record({input.edge, weight.Edge(), bias.Edge()}, {input.storage},
                      [this, bytes = input.bytes(), weight_bytes = weight.bytes(),
                       bias_bytes = bias.bytes()](auto&, const auto&) {
                        TracedGradients gradients(3);
                        gradients[0] = tracer().Allocate(bytes);
                        gradients[1] = tracer().Allocate(weight_bytes, MemoryClass::kGradients);
                        gradients[2] = tracer().Allocate(bias_bytes, MemoryClass::kGradients);
                        return gradients;
                      });
  return output;
}

// Under autocast the result is float32, without a cast of the input.
TracedTensor ModelOps::Softmax(const TracedTensor& input) {
  TracedTensor output =
      tracer().NewTensor(input.elements, ops_.in_autocast() ? kFloat : input.element_size);
  output.edge = tracer().RecordLike(input, {output.storage});
  return output;
}

TracedTensor ModelOps::Gather(const TracedTensor& input, const TracedStorage& index,
                              int64_t elements) {
  TracedTensor output = tracer().NewTensor(elements, input.element_size);
  output.edge = tracer().RecordLike(input, {index, input.storage});
  return output;
}

TracedTensor ModelOps::Lookup(const TracedTensor& table, const TracedStorage& indices,
                              int64_t num_indices, int64_t width) {
  TracedTensor output = tracer().NewTensor(num_indices * width, table.element_size);
  // The gradient in one piece, then the sum of its rows.
  output.edge = tracer().Record(
      {table.edge}, {indices},
      [this, bytes = output.bytes(), table_bytes = table.bytes()](auto&, const auto&) {
        TracedStorage contiguous;
        if (!ops_.traits().cpu) contiguous = tracer().Allocate(bytes, MemoryClass::kTemporary);
        TracedStorage gradient = tracer().Allocate(table_bytes);
        if (ops_.traits().cpu) tracer().Touch(bytes);
        return OneGradient(std::move(gradient));
      });
  return output;
}

std::vector<TracedTensor> ModelOps::Split(const TracedTensor& input, int32_t parts) {
  TracedTensor view = input;
  view.elements = input.elements / parts;
  view.edge = tracer().Record({input.edge}, {},
                              [this, bytes = input.bytes()](auto&, const auto&) {
                                return OneGradient(tracer().Allocate(bytes));
                              },
                              {.num_outputs = parts});
  std::vector<TracedTensor> views(static_cast<size_t>(parts), view);
  for (int32_t i = 0; i < parts; ++i) views[static_cast<size_t>(i)].edge.output = i;
  return views;
}

TracedTensor ModelOps::Narrow(const TracedTensor& input, int64_t elements) {
  TracedTensor view = input;
  view.elements = elements;
  view.edge = tracer().RecordLike(input);
  return view;
}

TracedTensor ModelOps::Unfold(const TracedTensor& input, int64_t elements, int64_t length) {
  TracedTensor output = tracer().NewTensor(elements, input.element_size);
  output.edge =
      tracer().Record({input.edge}, {}, [this, bytes = input.bytes(), length](auto&, const auto&) {
        TracedStorage gradient = tracer().Allocate(bytes);
        tracer().Touch(kIndex * length);
        return OneGradient(std::move(gradient));
      });
  return output;
}

TracedTensor ModelOps::Repeat(const TracedTensor& input, int64_t times) {
  TracedTensor output = tracer().NewTensor(input.elements * times, input.element_size);
  output.edge = tracer().RecordLike(input);
  return output;
}

TracedTensor ModelOps::AddInPlace(const TracedTensor& a, const TracedTensor& b) {
  TracedTensor output = a;
  output.edge = tracer().Record({a.edge, b.edge}, {}, [](auto& incoming, const auto&) {
    TracedGradients gradients(2);
    gradients[0] = incoming[0];
    gradients[1] = incoming[0];
    return gradients;
  });
  return output;
}

TracedTensor ModelOps::MultiplyExpanded(const TracedTensor& a, const TracedTensor& b) {
  TracedTensor output = tracer().NewTensor(a.elements, a.element_size);
  // A weight is the same for all rows, else all of a row has one factor.
  const bool is_weight = b.edge.parameter >= 0;
  const int64_t times = a.elements / b.elements;
  const Reduction repetitions = {.rows = is_weight ? times : b.elements,
                                 .columns = is_weight ? b.elements : times,
                                 .over_rows = is_weight,
                                 .element_size = a.element_size};
  output.edge = tracer().Record(
      {a.edge, b.edge},
      {b.edge.IsWanted() ? a.storage : TracedStorage(),
       a.edge.IsWanted() ? b.storage : TracedStorage()},
      [this, bytes = a.bytes(), a_wanted = a.edge.IsWanted(),
       b_bytes = b.edge.IsWanted() ? b.bytes() : -1, repetitions](auto&, const auto&) {
        TracedGradients gradients(2);
        if (a_wanted) gradients[0] = tracer().Allocate(bytes);
        if (b_bytes >= 0) {
          const TracedStorage product = tracer().Allocate(bytes);
          tracer().LeaveKernel();
          gradients[1] = tracer().Allocate(b_bytes);
          ops_.TouchReductionScratch(repetitions);
        }
        return gradients;
      },
      {.saves_others = true});
  return output;
}

TracedTensor ModelOps::RotateHalf(const TracedTensor& x) {
  const TracedTensor first = ops_.Select(x, 2);
  const TracedTensor second = ops_.Select(x, 2);
  const TracedTensor negated = ops_.Copy(second, /*copies_back=*/true);
  TracedTensor output = tracer().NewTensor(x.elements, x.element_size);
  output.edge = tracer().Record({negated.edge, first.edge}, {}, [](auto& incoming, const auto&) {
    TracedGradients gradients(2);
    gradients[0] = incoming[0];
    gradients[1] = incoming[0];
    return gradients;
  });
  return output;
}

TracedTensor ModelOps::Power(const TracedTensor& input) {
  const TracedTensor x = ops_.CastToFloat(input);
  TracedTensor output = tracer().NewTensor(x.elements, x.element_size);
  output.edge =
      tracer().Record({x.edge}, {x.storage}, [this, bytes = x.bytes()](auto&, const auto&) {
        const TracedStorage lower_power = tracer().Allocate(bytes);
        const TracedStorage slope = tracer().Allocate(bytes);
        return OneGradient(tracer().Allocate(bytes));
      });
  return output;
}

TracedTensor ModelOps::GeluByTanh(const TracedTensor& x) {
  const TracedTensor half = ops_.Scale(x);
  TracedTensor factor = Power(x);
  factor = ops_.Scale(factor);
  factor = ops_.Add(x, factor);
  factor = ops_.Scale(factor);
  factor = ops_.Activate(factor, Activation::kTanh);
  factor = AddToNumber(factor);
  return ops_.Multiply(half, factor);
}

TracedTensor ModelOps::Activate(const TracedTensor& input, const std::string& hidden_act) {
  if (hidden_act == kWrittenGelu) return GeluByTanh(input);
  return ops_.Activate(input, *ActivationOf(hidden_act));
}

TracedTensor ModelOps::ReciprocalDeviation(const TracedTensor& x, int64_t rows,
                                           TracedStorage& variance) {
  TracedTensor mean;
  {
    const TracedTensor square = Power(x);
    mean = ops_.Mean(square, rows);
  }
  variance = mean.storage;
  const TracedTensor sum = AddToNumber(mean);
  TracedTensor output = tracer().NewTensor(rows, kFloat);
  output.edge = tracer().Record({sum.edge}, {output.storage},
                                [this, bytes = output.bytes()](auto&, const auto&) {
                                  const TracedStorage cube = tracer().Allocate(bytes);
                                  const TracedStorage half = tracer().Allocate(bytes);
                                  return OneGradient(tracer().Allocate(bytes));
                                });
  return output;
}

TracedTensor ModelOps::RmsNorm(const TracedTensor& input, const TracedParameter& weight) {
  TracedTensor hidden = ops_.Cast(input, kFloat);
  TracedStorage variance;
  {
    const TracedTensor deviation =
        ReciprocalDeviation(hidden, hidden.elements / weight.elements, variance);
    hidden = MultiplyExpanded(hidden, deviation);
  }
  return MultiplyExpanded(ops_.Cast(hidden, input.element_size), ModelParameters::AsTensor(weight));
}

// ---- Parameters --------------------------------------------------------------------------------

ModelParameters::ModelParameters(TraceOps& ops, const std::vector<ParameterTensor>& tensors,
                                 const TracedAdapters& adapters) {
  ops.SetTrainable(adapters.tensors.empty());
  quantizes_ = adapters.base == FrozenStorage::Type::kNf4;
  for (const ParameterTensor& tensor : tensors) {
    if (quantizes_) {
      AddQuantized(ops, tensor);
    } else {
      Add(ops, tensor, tensor.name);
    }
  }
  ops.SetTrainable(true);
  if (!adapters.tensors.empty()) AddAdapters(ops, adapters);
}

ModelParameters::ModelParameters(TraceOps& ops, const std::vector<ParameterTensor>& tensors,
                                 absl::FunctionRef<bool(const ParameterTensor&)> is_trained,
                                 FrozenStorage::Type base)
    : base_(base) {
  if (base == FrozenStorage::Type::kNf4) {
    ops.tracer().Keep(ops.tracer().Allocate(kNf4TableBytes, MemoryClass::kWeights));
  }
  for (const ParameterTensor& tensor : tensors) {
    ops.SetTrainable(is_trained(tensor));
    if (base == FrozenStorage::Type::kFloat32) {
      Add(ops, tensor, tensor.name);
    } else {
      AddStored(ops, tensor);
    }
  }
  ops.SetTrainable(true);
}

void ModelParameters::AddAdapters(TraceOps& ops, const TracedAdapters& adapters) {
  adapter_dropout_ = adapters.dropout;
  adapters_as_peft_ = adapters.as_peft;
  // A head's copy takes its place; peft's has its type.
  for (const ParameterTensor& tensor : adapters.tensors) {
    const std::string name = absl::StrReplaceAll(tensor.name, {{".modules_to_save.default", ""}});
    const bool copied = adapters.as_peft && Has(name);
    ops.SetParameterType(copied ? At(name).element_size : kFloat, /*trainable=*/true);
    Add(ops, tensor, name);
  }
}

void ModelParameters::AddStored(TraceOps& ops, const ParameterTensor& tensor) {
  const bool transposed = tensor.kind == ParameterKind::kTransposedLinear;
  if (tensor.kind != ParameterKind::kLinear && !transposed) {
    const bool table = tensor.kind == ParameterKind::kEmbedding;
    ops.SetParameterType(table ? kHalf : kFloat, /*trainable=*/false);
    Add(ops, tensor, tensor.name);
    return ops.SetParameterType(kFloat, /*trainable=*/true);
  }
  const int64_t elements = tensor.NumElements();
  if (base_ == FrozenStorage::Type::kBFloat16) return AddWeights(ops, tensor, {kHalf * elements});
  const int64_t blocks = (elements + kNf4Block - 1) / kNf4Block;
  AddWeights(ops, tensor, {blocks * kNf4Block / 2, kFloat * blocks});
}

void ModelParameters::AddQuantized(TraceOps& ops, const ParameterTensor& tensor) {
  const std::vector<int64_t> bytes = StoredTensorBytes(tensor, {.type = FrozenStorage::Type::kNf4});
  if (bytes.size() == 1) return Add(ops, tensor, tensor.name);
  AddWeights(ops, tensor, bytes);
}

// Tensors that are no parameters.
void ModelParameters::AddWeights(TraceOps& ops, const ParameterTensor& tensor,
                                 const std::vector<int64_t>& bytes) {
  for (const int64_t size : bytes) {
    ops.tracer().Keep(ops.tracer().Allocate(size, MemoryClass::kWeights));
  }
  const bool transposed = tensor.kind == ParameterKind::kTransposedLinear;
  const int64_t elements = tensor.NumElements();
  by_name_[tensor.name] = {
      .parameter = {.elements = elements, .columns = tensor.columns, .trainable = false},
      .inputs = transposed ? tensor.rows : tensor.columns,
      .outputs = transposed ? tensor.columns : tensor.rows,
      .transposed = transposed,
      .stored = true};
}

void ModelParameters::Add(TraceOps& ops, const ParameterTensor& tensor, const std::string& name) {
  const bool transposed = tensor.kind == ParameterKind::kTransposedLinear;
  const TracedParameter parameter = ops.Parameter(tensor.rows, tensor.columns);
  by_name_[name] = {.parameter = parameter,
                    .inputs = transposed ? tensor.rows : tensor.columns,
                    .outputs = transposed ? tensor.columns : tensor.rows,
                    .transposed = transposed};
  if (parameter.trainable) trained_layers_.insert(tensor.layer);
}

const ModelParameters::Entry& ModelParameters::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  HPO_CHECK(found != by_name_.end());
  return found->second;
}

const TracedParameter& ModelParameters::At(const std::string& name) const {
  return Find(name).parameter;
}

TracedLinear ModelParameters::Linear(absl::string_view module) const {
  const Entry& weight = Find(absl::StrCat(module, ".weight"));
  TracedLinear linear{.weight = weight.parameter,
                      .in_features = weight.inputs,
                      .out_features = weight.outputs,
                      .transposed = weight.transposed};
  if (weight.stored) linear.stored = base_;
  linear.by_bitsandbytes = weight.stored && quantizes_;
  const std::string bias = absl::StrCat(module, ".bias");
  if (Has(bias)) linear.bias = At(bias);
  const std::string a = absl::StrCat(module, ".lora_A.default.weight");
  if (Has(a)) {
    linear.adapter = TracedAdapter{.a = At(a),
                                   .b = At(absl::StrCat(module, ".lora_B.default.weight")),
                                   .rank = Find(a).outputs,
                                   .dropout = adapter_dropout_,
                                   .as_peft = adapters_as_peft_};
  }
  return linear;
}

TracedNorm ModelParameters::Norm(absl::string_view module) const {
  const Entry& weight = Find(absl::StrCat(module, ".weight"));
  TracedNorm norm{.weight = weight.parameter, .width = weight.outputs};
  const std::string bias = absl::StrCat(module, ".bias");
  if (Has(bias)) norm.bias = At(bias);
  return norm;
}

TracedTensor ModelParameters::AsTensor(const TracedParameter& parameter) {
  return {.elements = parameter.elements,
          .element_size = parameter.element_size,
          .edge = parameter.Edge()};
}

}  // namespace hpo
