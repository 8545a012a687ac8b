// Cross entropy over many classes without all logits at once.
#pragma once

#include <cstdint>
#include <functional>

#include "worker/trainer/base/torch_headers.h"

namespace hpo::trainer {

// What turns features into logits: [rows, width] to [rows, classes]. Called twice for each piece,
// the second time in backward; its parameters get their gradients, nothing else that it captures.
using LogitsOf = std::function<torch::Tensor(const torch::Tensor& features)>;

// Labels that no loss is taken of.
constexpr int64_t kIgnoredLabel = -100;

// The sum over rows of the cross entropy, a float32 scalar; rows labelled kIgnoredLabel count 0.
// `rows_at_once` (>= 1) of them have logits at a time, in forward and in backward: no more than
// rows_at_once x classes x 12 bytes for them, for one more product with the head's weights
// (models/recomputation.h). features: [rows, width]; labels: int64 [rows].
torch::Tensor ChunkedCrossEntropy(const torch::Tensor& features, const torch::Tensor& labels,
                                  const LogitsOf& logits_of, int64_t rows_at_once);

}  // namespace hpo::trainer
