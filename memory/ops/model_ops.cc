// Tested by tests/worker/trainer/memory_trace_test.cc.
#include "memory/ops/model_ops.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {
namespace {

// Two floats for each byte of codes.
constexpr int64_t kNf4CodeTableBytes = 256 * 2 * kFloatBytes;
// The efficient kernel reads its mask in rows of a multiple of this.
constexpr int64_t kMaskAlignment = 8;
constexpr char kWrittenGelu[] = "gelu_new";

}  // namespace

namespace ops {
namespace {

TracedTensor MultiplyExpanded(TracedDevice& device, const TracedTensor& a, const TracedTensor& b) {
  TracedTensor output = device.NewTensor(a.elements, a.element_size);
  // A weight is the same for all rows, else all of a row has one factor.
  const bool is_weight = b.edge.parameter >= 0;
  const int64_t times = a.elements / b.elements;
  const Reduction repetitions = {.rows = is_weight ? times : b.elements,
                                 .columns = is_weight ? b.elements : times,
                                 .over_rows = is_weight,
                                 .element_size = a.element_size};
  output.edge = device.Record(
      {a.edge, b.edge},
      {b.edge.IsWanted() ? a.storage : TracedStorage(),
       a.edge.IsWanted() ? b.storage : TracedStorage()},
      [&device, bytes = a.bytes(), a_wanted = a.edge.IsWanted(),
       b_bytes = b.edge.IsWanted() ? b.bytes() : -1, repetitions](auto&, const auto&) {
        TracedGradients gradients(2);
        if (a_wanted) gradients[0] = device.Allocate(bytes);
        if (b_bytes >= 0) {
          const TracedStorage product = device.Allocate(bytes);
          device.tracer().LeaveKernel();
          gradients[1] = device.Allocate(b_bytes);
          TouchReductionScratch(device, repetitions);
        }
        return gradients;
      },
      {.saves_others = true});
  return output;
}

TracedTensor Power(TracedDevice& device, const TracedTensor& input) {
  const TracedTensor x = CastToFloat(device, input);
  TracedTensor output = device.NewTensor(x.elements, x.element_size);
  output.edge =
      device.Record({x.edge}, {x.storage}, [&device, bytes = x.bytes()](auto&, const auto&) {
        const TracedStorage lower_power = device.Allocate(bytes);
        const TracedStorage slope = device.Allocate(bytes);
        return OneGradient(device.Allocate(bytes));
      });
  return output;
}

TracedTensor GeluByTanh(TracedDevice& device, const TracedTensor& x) {
  const TracedTensor half = Scale(device, x);
  TracedTensor factor = Power(device, x);
  factor = Scale(device, factor);
  factor = Add(device, x, factor);
  factor = Scale(device, factor);
  factor = Activate(device, factor, Activation::kTanh);
  factor = AddToNumber(device, factor);
  return Multiply(device, half, factor);
}

TracedTensor ReciprocalDeviation(TracedDevice& device, const TracedTensor& x, int64_t rows,
                                 TracedStorage& variance) {
  TracedTensor mean;
  {
    const TracedTensor square = Power(device, x);
    mean = Mean(device, square, rows);
  }
  variance = mean.storage;
  const TracedTensor sum = AddToNumber(device, mean);
  TracedTensor output = device.NewTensor(rows, kFloatBytes);
  output.edge = device.Record({sum.edge}, {output.storage},
                              [&device, bytes = output.bytes()](auto&, const auto&) {
                                const TracedStorage cube = device.Allocate(bytes);
                                const TracedStorage half = device.Allocate(bytes);
                                return OneGradient(device.Allocate(bytes));
                              });
  return output;
}

}  // namespace

TracedStorage Plain(TracedDevice& device, int64_t elements, int64_t element_size) {
  return device.Allocate(elements * element_size);
}

TracedStorage Range(TracedDevice& device, int64_t elements) {
  const TracedStorage range = Plain(device, elements, kIndexBytes);
  return Plain(device, elements, kIndexBytes);  // plus the number of past tokens
}

TracedStorage AttentionBias(TracedDevice& device, int64_t rows, int64_t tokens,
                            const TracedTensor& query) {
  const int64_t padded = (tokens + kMaskAlignment - 1) / kMaskAlignment * kMaskAlignment;
  TracedStorage bias = Plain(device, rows * tokens * tokens, query.element_size);
  if (padded != tokens) bias = Plain(device, rows * tokens * padded, query.element_size);
  return bias;
}

TracedTensor WordEmbedding(TracedDevice& device, const TracedStorage& ids, int64_t tokens,
                           const TracedParameter& table, int64_t width, bool wants_gradient) {
  TracedTensor output = Embedding(device, ids, tokens, table, width);
  if (!wants_gradient || output.edge.IsWanted()) return output;
  output.edge = device.Record({}, {output.storage},
                              [&device](auto& incoming, const auto& saved) {
                                device.tracer().HoldByGraph(saved[0]);
                                device.tracer().HoldByGraph(std::move(incoming[0]));
                                return TracedGradients();
                              },
                              {.has_parameters = true});
  return output;
}

TracedTensor View(TracedDevice& device, const TracedTensor& input) {
  TracedTensor output = input;
  output.edge = device.Record({input.edge}, {}, [](auto& incoming, const auto&) {
    return OneGradient(std::move(incoming[0]));
  });
  return output;
}

TracedTensor AddToNumber(TracedDevice& device, const TracedTensor& input) {
  return Copy(device, input);
}

TracedTensor MatrixProduct(TracedDevice& device, const TracedTensor& left,
                           const TracedTensor& right, int64_t elements) {
  const TracedTensor a = CastForProduct(device, left);
  const TracedTensor b = CastForProduct(device, right);
  TracedTensor output = device.NewTensor(elements, a.element_size);
  output.edge = device.Record({a.edge, b.edge},
                              {b.edge.IsWanted() ? a.storage : TracedStorage(),
                               a.edge.IsWanted() ? b.storage : TracedStorage()},
                              [&device, a_bytes = a.edge.IsWanted() ? a.bytes() : -1,
                               b_bytes = b.edge.IsWanted() ? b.bytes() : -1](auto&, const auto&) {
                                TracedGradients gradients(2);
                                if (b_bytes >= 0) gradients[1] = device.Allocate(b_bytes);
                                if (a_bytes >= 0) gradients[0] = device.Allocate(a_bytes);
                                return gradients;
                              });
  return output;
}

TracedTensor MultiplyBy(TracedDevice& device, const TracedTensor& input,
                        const TracedStorage& factor, int64_t factor_element_size) {
  TracedStorage widened;  // a CPU's kernel wants one type
  if (device.traits().cpu && input.element_size < factor_element_size) {
    widened = device.Allocate(input.elements * factor_element_size, MemoryClass::kTemporary);
  }
  TracedTensor output =
      device.NewTensor(input.elements, std::max(input.element_size, factor_element_size));
  output.edge = device.Record(
      {input.edge}, {factor},
      [&device, bytes = output.bytes(), input_bytes = input.bytes()](auto&, const auto&) {
        TracedStorage gradient = device.Allocate(bytes);
        device.tracer().LeaveKernel();
        if (input_bytes < bytes) gradient = device.Allocate(input_bytes);
        return OneGradient(std::move(gradient));
      });
  return output;
}

// Kept and allocated as a product with the mask is.
TracedTensor MaskedFill(TracedDevice& device, const TracedTensor& input,
                        const TracedStorage& mask) {
  return MultiplyBy(device, input, mask);
}

TracedTensor MaskedFillInPlace(TracedDevice& device, const TracedTensor& input,
                               const TracedStorage& mask) {
  TracedTensor output = input;
  output.edge = device.RecordLike(input, {mask});
  return output;
}

TracedTensor Convolution(TracedDevice& device, const TracedTensor& input,
                         const TracedParameter& weight, const TracedParameter& bias) {
  TracedTensor output = device.NewTensor(input.elements, input.element_size);
  output.edge = device.Record({input.edge, weight.Edge(), bias.Edge()}, {input.storage},
                              [&device, bytes = input.bytes(), weight_bytes = weight.bytes(),
                               bias_bytes = bias.bytes()](auto&, const auto&) {
                                TracedGradients gradients(3);
                                gradients[0] = device.Allocate(bytes);
                                gradients[1] =
                                    device.Allocate(weight_bytes, MemoryClass::kGradients);
                                gradients[2] = device.Allocate(bias_bytes, MemoryClass::kGradients);
                                return gradients;
                              });
  return output;
}

// Under autocast the result is float32, without a cast of the input.
TracedTensor Softmax(TracedDevice& device, const TracedTensor& input) {
  TracedTensor output =
      device.NewTensor(input.elements, device.in_autocast() ? kFloatBytes : input.element_size);
  output.edge = device.RecordLike(input, {output.storage});
  return output;
}

TracedTensor Gather(TracedDevice& device, const TracedTensor& input, const TracedStorage& index,
                    int64_t elements) {
  TracedTensor output = device.NewTensor(elements, input.element_size);
  output.edge = device.RecordLike(input, {index, input.storage});
  return output;
}

TracedTensor Lookup(TracedDevice& device, const TracedTensor& table, const TracedStorage& indices,
                    int64_t num_indices, int64_t width) {
  TracedTensor output = device.NewTensor(num_indices * width, table.element_size);
  // The gradient in one piece, then the sum of its rows.
  output.edge = device.Record(
      {table.edge}, {indices},
      [&device, bytes = output.bytes(), table_bytes = table.bytes()](auto&, const auto&) {
        TracedStorage contiguous;
        if (!device.traits().cpu) contiguous = device.Allocate(bytes, MemoryClass::kTemporary);
        TracedStorage gradient = device.Allocate(table_bytes);
        if (device.traits().cpu) device.Touch(bytes);
        return OneGradient(std::move(gradient));
      });
  return output;
}

std::vector<TracedTensor> Split(TracedDevice& device, const TracedTensor& input, int32_t parts) {
  TracedTensor view = input;
  view.elements = input.elements / parts;
  view.edge = device.Record({input.edge}, {},
                            [&device, bytes = input.bytes()](auto&, const auto&) {
                              return OneGradient(device.Allocate(bytes));
                            },
                            {.num_outputs = parts});
  std::vector<TracedTensor> views(static_cast<size_t>(parts), view);
  for (int32_t i = 0; i < parts; ++i) views[static_cast<size_t>(i)].edge.output = i;
  return views;
}

TracedTensor Narrow(TracedDevice& device, const TracedTensor& input, int64_t elements) {
  TracedTensor view = input;
  view.elements = elements;
  view.edge = device.RecordLike(input);
  return view;
}

TracedTensor Unfold(TracedDevice& device, const TracedTensor& input, int64_t elements,
                    int64_t length) {
  TracedTensor output = device.NewTensor(elements, input.element_size);
  output.edge =
      device.Record({input.edge}, {}, [&device, bytes = input.bytes(), length](auto&, const auto&) {
        TracedStorage gradient = device.Allocate(bytes);
        device.Touch(kIndexBytes * length);
        return OneGradient(std::move(gradient));
      });
  return output;
}

TracedTensor Repeat(TracedDevice& device, const TracedTensor& input, int64_t times) {
  TracedTensor output = device.NewTensor(input.elements * times, input.element_size);
  output.edge = device.RecordLike(input);
  return output;
}

TracedTensor RotateHalf(TracedDevice& device, const TracedTensor& x) {
  const TracedTensor first = Select(device, x, 2);
  const TracedTensor second = Select(device, x, 2);
  const TracedTensor negated = Copy(device, second, /*copies_back=*/true);
  TracedTensor output = device.NewTensor(x.elements, x.element_size);
  output.edge = device.Record({negated.edge, first.edge}, {}, [](auto& incoming, const auto&) {
    TracedGradients gradients(2);
    gradients[0] = incoming[0];
    gradients[1] = incoming[0];
    return gradients;
  });
  return output;
}

TracedTensor AddInPlace(TracedDevice& device, const TracedTensor& a, const TracedTensor& b) {
  TracedTensor output = a;
  output.edge = device.Record({a.edge, b.edge}, {}, [](auto& incoming, const auto&) {
    TracedGradients gradients(2);
    gradients[0] = incoming[0];
    gradients[1] = incoming[0];
    return gradients;
  });
  return output;
}

TracedTensor RmsNorm(TracedDevice& device, const TracedTensor& input,
                     const TracedParameter& weight) {
  TracedTensor hidden = Cast(device, input, kFloatBytes);
  TracedStorage variance;
  {
    const TracedTensor deviation =
        ReciprocalDeviation(device, hidden, hidden.elements / weight.elements, variance);
    hidden = MultiplyExpanded(device, hidden, deviation);
  }
  return MultiplyExpanded(device, Cast(device, hidden, input.element_size),
                          ModelParameters::AsTensor(weight));
}

TracedTensor Activate(TracedDevice& device, const TracedTensor& input,
                      const std::string& hidden_act) {
  if (hidden_act == kWrittenGelu) return GeluByTanh(device, input);
  return Activate(device, input, *ActivationOf(hidden_act));
}

}  // namespace ops

ModelParameters::ModelParameters(TracedDevice& device, const std::vector<ParameterTensor>& tensors,
                                 const TracedAdapters& adapters) {
  device.SetTrainable(adapters.tensors.empty());
  quantizes_ = adapters.base == FrozenStorage::Type::kNf4;
  for (const ParameterTensor& tensor : tensors) {
    if (quantizes_) {
      AddQuantized(device, tensor);
    } else {
      Add(device, tensor, tensor.name);
    }
  }
  device.SetTrainable(true);
  if (!adapters.tensors.empty()) AddAdapters(device, adapters);
}

ModelParameters::ModelParameters(TracedDevice& device, const std::vector<ParameterTensor>& tensors,
                                 absl::FunctionRef<bool(const ParameterTensor&)> is_trained,
                                 FrozenStorage::Type base)
    : base_(base) {
  if (base == FrozenStorage::Type::kNf4) {
    device.tracer().Keep(device.Allocate(kNf4CodeTableBytes, MemoryClass::kWeights));
  }
  for (const ParameterTensor& tensor : tensors) {
    device.SetTrainable(is_trained(tensor));
    if (base == FrozenStorage::Type::kFloat32) {
      Add(device, tensor, tensor.name);
    } else {
      AddStored(device, tensor);
    }
  }
  device.SetTrainable(true);
}

void ModelParameters::AddAdapters(TracedDevice& device, const TracedAdapters& adapters) {
  adapter_dropout_ = adapters.dropout;
  adapters_as_peft_ = adapters.as_peft;
  // A head's copy takes its place; peft's has its type.
  for (const ParameterTensor& tensor : adapters.tensors) {
    const std::string name = absl::StrReplaceAll(tensor.name, {{".modules_to_save.default", ""}});
    const bool copied = adapters.as_peft && Has(name);
    device.SetParameterType(copied ? At(name).element_size : kFloatBytes, /*trainable=*/true);
    Add(device, tensor, name);
  }
}

void ModelParameters::AddStored(TracedDevice& device, const ParameterTensor& tensor) {
  const bool transposed = tensor.kind == ParameterKind::kTransposedLinear;
  if (tensor.kind != ParameterKind::kLinear && !transposed) {
    const bool table = tensor.kind == ParameterKind::kEmbedding;
    device.SetParameterType(table ? kHalfBytes : kFloatBytes, /*trainable=*/false);
    Add(device, tensor, tensor.name);
    return device.SetParameterType(kFloatBytes, /*trainable=*/true);
  }
  const int64_t elements = tensor.NumElements();
  if (base_ == FrozenStorage::Type::kBFloat16)
    return AddWeights(device, tensor, {kHalfBytes * elements});
  const int64_t blocks = (elements + kNf4Block - 1) / kNf4Block;
  AddWeights(device, tensor, {blocks * kNf4Block / 2, kFloatBytes * blocks});
}

void ModelParameters::AddQuantized(TracedDevice& device, const ParameterTensor& tensor) {
  const std::vector<int64_t> bytes = StoredTensorBytes(tensor, {.type = FrozenStorage::Type::kNf4});
  if (bytes.size() == 1) return Add(device, tensor, tensor.name);
  AddWeights(device, tensor, bytes);
}

// Tensors that are no parameters.
void ModelParameters::AddWeights(TracedDevice& device, const ParameterTensor& tensor,
                                 const std::vector<int64_t>& bytes) {
  for (const int64_t size : bytes) {
    device.tracer().Keep(device.Allocate(size, MemoryClass::kWeights));
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

void ModelParameters::Add(TracedDevice& device, const ParameterTensor& tensor,
                          const std::string& name) {
  const bool transposed = tensor.kind == ParameterKind::kTransposedLinear;
  const TracedParameter parameter = device.Parameter(tensor.rows, tensor.columns);
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

}  // namespace hpo::memory
