// Parameters between a model and safetensors files, by Hugging Face's names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/files/safetensors.h"

namespace hpo::trainer {

// What loading did besides copying.
struct LoadReport {
  std::vector<std::string> missing;  // parameters that the file lacks: head, pooler
  std::vector<std::string> ignored;  // tensors of the file that the model lacks
  // Tensors of another task's head, which the file has and the model has not, or in another shape:
  // "classifier.weight [3, 32]".
  std::vector<std::string> other_head;
};

// Names of all parameters, in the model's order.
std::vector<std::string> ParameterNames(const torch::nn::Module& model);

// Fills the parameters `names` as BERT's authors do: weights from N(0, range), biases 0, weights of
// norms 1, the row of `pad_token_id` in the word embeddings 0. A parameter's numbers depend on
// `seed` and its own position among the model's parameters only.
void InitializeParameters(torch::nn::Module& model, std::span<const std::string> names,
                          double range, int64_t pad_token_id, uint64_t seed);

// Copies `files` into the model; float16, bfloat16 and float64 become float32.
// Files of a bare model may leave out its name in front ("bert."); "gamma" and "beta" are taken for
// LayerNorm's weight and bias. What the files may lack, or may have in another shape: the
// classification head and the span head; they may also lack the pooler. Such parameters keep their
// values. What they may have in addition: other heads (of pre-training, or of another task) and
// buffers.
//   InvalidArgument  another parameter missing, a tensor that is neither the model's nor ignorable,
//                    or a shape or type that differs; names file, tensor, expected and found
absl::StatusOr<LoadReport> LoadParameters(torch::nn::Module& model,
                                          std::span<const SafetensorsFile> files);

// Writes every parameter as float32 under its name; adapters are merged into the layers that they
// are in the same folder. See WriteSafetensors for the codes.
absl::Status SaveParameters(torch::nn::Module& model, const std::string& path);

}  // namespace hpo::trainer
