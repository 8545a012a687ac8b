#include "worker/trainer/models/attention.h"

#include <cmath>
#include <limits>

#include "worker/trainer/models/layers.h"

namespace hpo {

torch::Tensor AttentionBias(const torch::Tensor& mask) {
  return at::zeros(mask.sizes(), mask.options().dtype(torch::kFloat32))
      .masked_fill_(mask == 0, std::numeric_limits<float>::lowest())
      .unsqueeze(1)
      .unsqueeze(1);
}

torch::Tensor Attend(const torch::Tensor& query, const torch::Tensor& key,
                     const torch::Tensor& value, const torch::Tensor& bias, double dropout,
                     bool training) {
  const double probability = training ? dropout : 0.0;
  if (!query.is_cpu() || probability == 0.0) {
    const int64_t tokens = query.size(2);
    return at::scaled_dot_product_attention(query, key, value,
                                            bias.expand({-1, -1, tokens, tokens}), probability);
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(3)));
  // In place: the product's backward does not look at its result.
  torch::Tensor scores = at::matmul(query, key.transpose(2, 3)).mul_(scale).add_(bias);
  torch::Tensor probabilities = at::softmax(scores, /*dim=*/-1);
  scores.reset();
  return at::matmul(Dropout(probabilities, probability, training), value);
}

}  // namespace hpo
