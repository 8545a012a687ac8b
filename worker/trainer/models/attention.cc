#include "worker/trainer/models/attention.h"

#include <array>
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

namespace {

bool IsFused(torch::Device device, double dropout) { return !device.is_cpu() || dropout == 0.0; }

}  // namespace

torch::Tensor Attend(const torch::Tensor& query, const torch::Tensor& key,
                     const torch::Tensor& value, const torch::Tensor& bias, double dropout,
                     bool training) {
  const double probability = training ? dropout : 0.0;
  // Kernels want one type; of a number for each token the copy is small.
  const torch::Tensor typed_bias = bias.to(query.scalar_type());
  if (IsFused(query.device(), probability)) {
    const int64_t tokens = query.size(2);
    return at::scaled_dot_product_attention(
        query, key, value, typed_bias.expand({-1, -1, tokens, tokens}), probability);
  }
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(3)));
  // In place: the product's backward does not look at its result.
  torch::Tensor scores = at::matmul(query, key.transpose(2, 3)).mul_(scale).add_(typed_bias);
  torch::Tensor probabilities = at::softmax(scores, /*dim=*/-1);
  scores.reset();
  return at::matmul(Dropout(probabilities, probability, training), value);
}

std::string AttentionKernel(torch::Device device, double dropout) {
  if (!IsFused(device, dropout)) return "math";
  const auto options = torch::TensorOptions(torch::kFloat32).device(device);
  const torch::Tensor query = at::zeros({2, 2, 16, 64}, options).requires_grad_();
  const torch::Tensor mask = at::ones({2, 16}, options.dtype(torch::kInt64));
  const torch::Tensor bias = AttentionBias(mask).expand({-1, -1, 16, 16});
  // In the order of torch's sdp::SDPBackend.
  static constexpr std::array<const char*, 4> kNames = {"math", "flash", "efficient", "cudnn"};
  const int64_t choice = at::_fused_sdp_choice(query, query, query, bias, dropout);
  return choice >= 0 && choice < 4 ? kNames[static_cast<size_t>(choice)] : "other";
}

}  // namespace hpo
