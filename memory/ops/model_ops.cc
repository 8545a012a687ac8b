// Tested by tests/worker/trainer/memory_trace_test.cc.
#include "memory/ops/model_ops.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "memory/ops/tensor_ops.h"
#include "memory/trace/step_tracer.h"

namespace hpo::memory {
namespace {

// Two floats for each byte of codes.
constexpr int64_t kNf4CodeTableBytes = 256 * 2 * kFloatBytes;

}  // namespace

namespace ops {
TracedTensor View(TracedDevice& device, const TracedTensor& input) {
  TracedTensor output = input;
  output.edge = device.Record({input.edge}, {}, [](auto& incoming, const auto&) {
    return OneGradient(std::move(incoming[0]));
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
        if (input_bytes < bytes) gradient = device.Allocate(input_bytes);
        return OneGradient(std::move(gradient));
      });
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

}  // namespace ops

ModelParameters::ModelParameters(TracedDevice& device, const std::vector<ParameterTensor>& tensors,
                                 absl::FunctionRef<bool(const ParameterTensor&)> is_trained,
                                 FrozenType base)
    : base_(base) {
  if (base == FrozenType::kNf4) {
    device.tracer().Keep(device.Allocate(kNf4CodeTableBytes, MemoryClass::kWeights));
  }
  for (const ParameterTensor& tensor : tensors) {
    device.SetTrainable(is_trained(tensor));
    if (base == FrozenType::kFloat32) {
      Add(device, tensor, tensor.name);
    } else {
      AddStored(device, tensor);
    }
  }
  device.SetTrainable(true);
}

void ModelParameters::AddAdapters(TracedDevice& device, const TracedAdapters& adapters) {
  adapter_dropout_ = adapters.dropout;
  device.SetParameterType(kFloatBytes, /*trainable=*/true);
  for (const ParameterTensor& tensor : adapters.tensors) Add(device, tensor, tensor.name);
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
  if (base_ == FrozenType::kBFloat16) return AddWeights(device, tensor, {kHalfBytes * elements});
  const int64_t blocks = (elements + kNf4Block - 1) / kNf4Block;
  AddWeights(device, tensor, {blocks * kNf4Block / 2, kFloatBytes * blocks});
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
  const std::string bias = absl::StrCat(module, ".bias");
  if (Has(bias)) linear.bias = At(bias);
  const std::string a = absl::StrCat(module, ".lora_A.default.weight");
  if (Has(a)) {
    linear.adapter = TracedAdapter{.a = At(a),
                                   .b = At(absl::StrCat(module, ".lora_B.default.weight")),
                                   .rank = Find(a).outputs,
                                   .dropout = adapter_dropout_};
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
