// Operations that Hugging Face's models write out one by one: what the layers of linear_ops.h and
// layer_ops.h are too coarse for; and a model's parameters by name. Sizes are elements. See
// traced_device.h. Source: torch 2.11's backward formulas (tools/autograd/derivatives.yaml),
// checked against FakeTensor runs of the models (scripts/reference/model_traces.py).
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

// What no gradient flows through: masks, indices, positions.
TracedStorage Plain(TracedDevice& device, int64_t elements, int64_t element_size);

// 0, 1, ... of one row, as torch makes position ids: int64.
TracedStorage Range(TracedDevice& device, int64_t elements);
// A mask of [rows, 1, tokens, tokens] as numbers of the query's type, as the fused kernels take
// it: its rows padded.
TracedStorage AttentionBias(TracedDevice& device, int64_t rows, int64_t tokens,
                            const TracedTensor& query);

// Of tokens. `wants_gradient`: of the result, where the table is frozen too, as
// enable_input_require_grads() makes it; it is thrown away.
TracedTensor WordEmbedding(TracedDevice& device, const TracedStorage& ids, int64_t tokens,
                           const TracedParameter& table, int64_t width, bool wants_gradient);

// The same memory; a node of its own for gradients to meet at.
TracedTensor View(TracedDevice& device, const TracedTensor& input);
// Plus a number: backward passes the gradient on.
TracedTensor AddToNumber(TracedDevice& device, const TracedTensor& input);
// Product of matrices; keeps both. b's gradient comes first.
TracedTensor MatrixProduct(TracedDevice& device, const TracedTensor& a, const TracedTensor& b,
                           int64_t elements);
// Product with something that no gradient flows through and that may be smaller; keeps it. The
// result has the wider type; 0: one not wider than the input's.
TracedTensor MultiplyBy(TracedDevice& device, const TracedTensor& input,
                        const TracedStorage& factor, int64_t factor_element_size = 0);
TracedTensor MaskedFill(TracedDevice& device, const TracedTensor& input, const TracedStorage& mask);
// The result has the input's memory; the gradient is filled in a copy.
TracedTensor MaskedFillInPlace(TracedDevice& device, const TracedTensor& input,
                               const TracedStorage& mask);
// One-dimensional, as many outputs as inputs.
TracedTensor Convolution(TracedDevice& device, const TracedTensor& input,
                         const TracedParameter& weight, const TracedParameter& bias);
TracedTensor Softmax(TracedDevice& device, const TracedTensor& input);
// Keeps input and index; backward scatters into zeros of the input's size.
TracedTensor Gather(TracedDevice& device, const TracedTensor& input, const TracedStorage& index,
                    int64_t elements);
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
// Written out in float32, as Llama's is.
TracedTensor RmsNorm(TracedDevice& device, const TracedTensor& input,
                     const TracedParameter& weight);
// As config.json names it ("gelu_new" is written out); CheckHasTrace knows those that there are.
TracedTensor Activate(TracedDevice& device, const TracedTensor& input,
                      const std::string& hidden_act);
// a += b: the result has a's memory.
TracedTensor AddInPlace(TracedDevice& device, const TracedTensor& a, const TracedTensor& b);

}  // namespace ops

// Adapters of a frozen model, as LoraTensors names them; none: the model itself is trained.
struct TracedAdapters {
  std::vector<ParameterTensor> tensors;
  double dropout = 0.0;
  bool as_peft = true;  // see TracedAdapter
  // Of the frozen model, as Hugging Face loads it: kNf4 are linear layers but the heads' in
  // bitsandbytes' blocks; else its tensors are of the type that the device makes them in.
  FrozenStorage::Type base = FrozenStorage::Type::kFloat32;
};

// The parameters of a model by name, made in the order of ParameterTensors.
class ModelParameters {
 public:
  // With `adapters` these are trained, in float32, and everything else is frozen.
  ModelParameters(TracedDevice& device, const std::vector<ParameterTensor>& tensors,
                  const TracedAdapters& adapters = {});
  // All but those that `is_trained` refuses are trained; `base`: LoraOptions::base.
  ModelParameters(TracedDevice& device, const std::vector<ParameterTensor>& tensors,
                  absl::FunctionRef<bool(const ParameterTensor&)> is_trained,
                  FrozenStorage::Type base = FrozenStorage::Type::kFloat32);
  // Makes them, in float32.
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
  // As bitsandbytes keeps it, where that replaces it.
  void AddQuantized(TracedDevice& device, const ParameterTensor& tensor);
  void AddWeights(TracedDevice& device, const ParameterTensor& tensor,
                  const std::vector<int64_t>& bytes);
  void Add(TracedDevice& device, const ParameterTensor& tensor, const std::string& name);
  const Entry& Find(const std::string& name) const;

  std::unordered_map<std::string, Entry> by_name_;
  std::set<int64_t> trained_layers_;
  FrozenStorage::Type base_ = FrozenStorage::Type::kFloat32;
  bool quantizes_ = false;  // by bitsandbytes
  double adapter_dropout_ = 0.0;
  bool adapters_as_peft_ = true;
};

}  // namespace hpo::memory
