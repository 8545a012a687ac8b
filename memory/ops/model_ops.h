// Operations that the layers of linear_ops.h and layer_ops.h are too coarse for; and a model's
// parameters by name. Sizes are elements. See traced_device.h.
// Source: torch 2.11's backward formulas (tools/autograd/derivatives.yaml).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "common/models/model_parameters.h"
#include "memory/ops/layer_ops.h"
#include "memory/ops/linear_ops.h"
#include "memory/trace/lora.h"
#include "memory/trace/traced_device.h"

namespace hpo::memory {

namespace ops {

// The same memory; a node of its own for gradients to meet at.
TracedTensor View(TracedDevice& device, const TracedTensor& input);
// Product with something that no gradient flows through and that may be smaller; keeps it. The
// result has the wider type; 0: one not wider than the input's.
TracedTensor MultiplyBy(TracedDevice& device, const TracedTensor& input,
                        const TracedStorage& factor, int64_t factor_element_size = 0);
// Rows of a table that gradients flow into; keeps `indices`. Its own gradient comes transposed.
TracedTensor Lookup(TracedDevice& device, const TracedTensor& table, const TracedStorage& indices,
                    int64_t num_indices, int64_t width);
// Parts of equal size along a dimension, as views; backward puts their gradients side by side.
std::vector<TracedTensor> Split(TracedDevice& device, const TracedTensor& input, int32_t parts);
// A stretch of `elements` along a dimension, or a repetition, as a view; backward makes the
// gradient of the whole.
TracedTensor Narrow(TracedDevice& device, const TracedTensor& input, int64_t elements);
// Copies of parts that overlap, `elements` together, along a dimension of `length`; backward
// makes their sum.
TracedTensor Unfold(TracedDevice& device, const TracedTensor& input, int64_t elements,
                    int64_t length);
TracedTensor Repeat(TracedDevice& device, const TracedTensor& input, int64_t times);
// (-x2, x1) of the halves of x's last dimension.
TracedTensor RotateHalf(TracedDevice& device, const TracedTensor& x);
// a += b: the result has a's memory.
TracedTensor AddInPlace(TracedDevice& device, const TracedTensor& a, const TracedTensor& b);

}  // namespace ops

// Adapters of a frozen model, as AdapterTensors names them.
struct TracedAdapters {
  std::vector<ParameterTensor> tensors;
  double dropout = 0.0;
};

// The parameters of a model by name, made in the order of ParameterTensors.
class ModelParameters {
 public:
  // All but those that `is_trained` refuses are trained; `base`: LoraOptions::base.
  ModelParameters(TracedDevice& device, const std::vector<ParameterTensor>& tensors,
                  absl::FunctionRef<bool(const ParameterTensor&)> is_trained,
                  FrozenType base = FrozenType::kFloat32);
  // Makes the adapters, in float32.
  void AddAdapters(TracedDevice& device, const TracedAdapters& adapters);

  // Whether a parameter of the layer, an adapter too, is trained.
  bool Trains(int64_t layer) const { return trained_layers_.count(layer) > 0; }
  // The tensor must exist.
  const TracedParameter& At(const std::string& name) const;
  bool Has(const std::string& name) const { return by_name_.count(name) > 0; }
  // `module`.weight and, where they exist, `module`.bias and its adapter.
  TracedLinear Linear(absl::string_view module) const;
  TracedNorm Norm(absl::string_view module) const;
  // A parameter as the input of an operation.
  static TracedTensor AsTensor(const TracedParameter& parameter);

 private:
  struct Entry {
    TracedParameter parameter;
    int64_t inputs = 0;  // of a linear layer's weight
    int64_t outputs = 0;
    bool transposed = false;
    bool stored = false;  // as base_ says
  };
  // A tensor of a frozen model, as base_ says.
  void AddStored(TracedDevice& device, const ParameterTensor& tensor);
  void AddWeights(TracedDevice& device, const ParameterTensor& tensor,
                  const std::vector<int64_t>& bytes);
  void Add(TracedDevice& device, const ParameterTensor& tensor, const std::string& name);
  const Entry& Find(const std::string& name) const;

  std::unordered_map<std::string, Entry> by_name_;
  std::set<int64_t> trained_layers_;
  FrozenType base_ = FrozenType::kFloat32;
  double adapter_dropout_ = 0.0;
};

}  // namespace hpo::memory
