// Low-rank adapters on a frozen model: what is trained, and what the frozen weights take.
// Sources: Hu et al. 2021 (arXiv:2106.09685); the rules by which adapters are put on modules are
// those of Hugging Face's peft 0.21 (golden data: scripts/reference/model_catalog.py).
// Pure; safe from any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/models/model_parameters.h"

namespace hpo::memory {

// Weights of NF4 that have a scale together.
inline constexpr int64_t kNf4Block = 64;

// A target that means every linear layer outside the head.
inline constexpr char kAllLinear[] = "all-linear";

// How frozen weights are stored.
struct FrozenStorage {
  enum class Type { kFloat32, kFloat16, kBFloat16, kNf4 };
  Type type = Type::kFloat32;
  // kNf4: the blocks' scales are quantised too ("double quantisation").
  bool double_quantization = true;
  // kNf4: bytes of an element of what is not quantised (embeddings, norms, biases, the head): 4
  // after peft's prepare_model_for_kbit_training, 2 where they stay as they were loaded.
  int64_t rest_element_bytes = 4;
  bool operator==(const FrozenStorage&) const = default;
};

// As lora.base says it: "fp32", "fp16", "bf16", "nf4".
absl::string_view Name(FrozenStorage::Type type);

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16.0;   // scales the adapters' output; costs no memory
  double dropout = 0.0;  // of the adapters' input
  // Ends of module names: "q_proj" is every module called so, "layers.0.self_attn.q_proj" one.
  // Empty: what peft takes for the family, queries and values.
  std::vector<std::string> targets;
  // Of our trainer's base: float32, or linear layers' weights as they say and embeddings in
  // bfloat16; norms and biases are float32 always. Of Hugging Face's: the whole model in 16 bits,
  // or linear layers but the heads' in bitsandbytes' NF4 with double quantisation.
  FrozenStorage::Type base = FrozenStorage::Type::kFloat32;
  auto operator<=>(const LoraOptions&) const = default;
};

// The tensors that are trained, in the order of named_parameters(): A [rank, inputs] and
// B [outputs, rank] of every target, in the base model's order of modules, and a copy of every
// tensor of a classification head, which is trained whole beside its frozen original.
//   InvalidArgument  a rank not in [1, 2^16], a target that no linear layer or embedding has (the
//                    message lists those that there are), no targets for a family that has no
//                    default (distilbert, camembert), and what ParameterTensors says
//   Unimplemented    the family is not known
absl::StatusOr<std::vector<ParameterTensor>> LoraTensors(const ModelShape& shape,
                                                         const TaskHead& head,
                                                         const LoraOptions& options);

// A linear layer that gets an adapter in our trainer, which puts them on the model under the head:
// the head is trained whole, and embeddings get none.
struct AdaptedLayer {
  std::string module;  // "bert.encoder.layer.0.attention.self.query"
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t layer = -1;  // as ParameterTensor's
  bool operator==(const AdaptedLayer&) const = default;
};

// A [rank, inputs] and B [outputs, rank], named as LoraTensors names them.
std::vector<ParameterTensor> AdapterTensors(const AdaptedLayer& layer, int64_t rank);

// In the order of the model's modules.
//   InvalidArgument, Unimplemented  as LoraTensors
absl::StatusOr<std::vector<AdaptedLayer>> AdaptedLayers(const ModelShape& shape,
                                                        const LoraOptions& options);

// Bytes of each device tensor that `tensor` is stored as; more than one only for a quantised one.
// NF4 stores linear layers' weights (except the heads') as 4-bit codes, a scale for each block of
// 64, and a table of 16 floats. The scales are float32; double quantisation makes them one byte
// each, with a float32 for each 256 and one for their mean.
// Sources: Dettmers et al. 2023 (arXiv:2305.14314), section 3; bitsandbytes' quantize_4bit.
std::vector<int64_t> StoredTensorBytes(const ParameterTensor& tensor, const FrozenStorage& storage);

}  // namespace hpo::memory
