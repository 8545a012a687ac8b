// Low-rank adapters on a frozen model.
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
enum class FrozenType { kFloat32, kBFloat16, kNf4 };

// As lora.base says it: "fp32", "bf16", "nf4".
absl::string_view Name(FrozenType type);

struct LoraOptions {
  int64_t rank = 8;
  double alpha = 16.0;   // scales the adapters' output; costs no memory
  double dropout = 0.0;  // of the adapters' input
  // Ends of module names: "q_proj" is every module called so, "layers.0.self_attn.q_proj" one.
  // Empty: what peft takes for the family, queries and values.
  std::vector<std::string> targets;
  // Float32, or linear layers' weights as they say and embeddings in bfloat16; norms and biases are
  // float32 always.
  FrozenType base = FrozenType::kFloat32;
  auto operator<=>(const LoraOptions&) const = default;
};

// A linear layer that gets an adapter in our trainer, which puts them on the model under the head:
// the head is trained whole, and embeddings get none.
struct AdaptedLayer {
  std::string module;  // "bert.encoder.layer.0.attention.self.query"
  int64_t inputs = 0;
  int64_t outputs = 0;
  int64_t layer = -1;  // as ParameterTensor's
  bool operator==(const AdaptedLayer&) const = default;
};

// A [rank, inputs] and B [outputs, rank], by peft's names.
std::vector<ParameterTensor> AdapterTensors(const AdaptedLayer& layer, int64_t rank);

// In the order of the model's modules.
//   InvalidArgument  a rank not in [1, 2^16], a target that no linear layer has (the message lists
//                    those that there are), no targets for a family that has no default
//                    (distilbert, camembert)
//   Unimplemented    the family is not known
absl::StatusOr<std::vector<AdaptedLayer>> AdaptedLayers(const ModelShape& shape,
                                                        const LoraOptions& options);

}  // namespace hpo::memory
