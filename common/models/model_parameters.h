// The parameters of a model, tensor by tensor: what weights, gradients and optimizer state are
// counted from. Golden data: scripts/reference/model_catalog.py (Hugging Face's own modules).
// Pure; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/models/model_spec.h"

namespace hpo {

// What is trained on top of a model.
struct TaskHead {
  enum class Kind {
    kNone,                    // the bare model: with its pooler, where it has one
    kSequenceClassification,  // the library's head of that name
    kCausalLm,                // decoders; without tensors of its own where it is tied
  };
  Kind kind = Kind::kNone;
  int64_t num_labels = 2;  // of kSequenceClassification
  bool operator==(const TaskHead&) const = default;
};

enum class ParameterKind {
  kEmbedding,
  kLinear,            // [outputs, inputs]
  kTransposedLinear,  // GPT-2's: [inputs, outputs]
  kConvolution,
  kBias,
  kNorm,  // weight or bias of a normalisation
};

struct ParameterTensor {
  std::string name;  // as named_parameters() of the Hugging Face model has it
  ParameterKind kind = ParameterKind::kLinear;
  int64_t rows = 0;
  int64_t columns = 1;  // product of all dimensions but the first; 1 for a vector
  int64_t layer = -1;   // -1: before the layers; num_layers: after them
  int64_t NumElements() const { return rows * columns; }
  bool operator==(const ParameterTensor&) const = default;
};

// Every parameter once, in the order of named_parameters().
//   Unimplemented    the family is not known (CheckKnownFamily)
//   InvalidArgument  a shape out of bounds (CheckShape), num_labels not in [1, 2^20], a
//                    language-model head on an encoder
absl::StatusOr<std::vector<ParameterTensor>> ParameterTensors(const ModelShape& shape,
                                                              const TaskHead& head = {});

// Their elements together: 109,482,240 of bert-base-uncased. Errors as ParameterTensors.
absl::StatusOr<int64_t> NumParameters(const ModelShape& shape, const TaskHead& head = {});

int64_t CountElements(const std::vector<ParameterTensor>& tensors);

constexpr int64_t kHeavyParameters = 250'000'000;

// Whether the bare model has at least kHeavyParameters; false where that is not known.
bool IsHeavy(const ModelShape& shape);

}  // namespace hpo
