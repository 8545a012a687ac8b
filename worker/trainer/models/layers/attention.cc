// Tested by tests/worker/trainer/models/tiny_models_golden_test.cc.
#include "worker/trainer/models/layers/attention.h"

#include <ATen/autocast_mode.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "worker/trainer/models/layers/layers.h"

namespace hpo::trainer {

torch::Tensor AttentionBias(const torch::Tensor& mask) {
  return at::zeros(mask.sizes(), mask.options().dtype(torch::kFloat32))
      .masked_fill_(mask == 0, std::numeric_limits<float>::lowest())
      .unsqueeze(1)
      .unsqueeze(1);
}

torch::Tensor CausalBias(const torch::Tensor& mask) {
  const int64_t tokens = mask.size(1);
  const auto later = at::ones({tokens, tokens}, mask.options().dtype(torch::kBool)).triu_(1);
  return at::zeros({mask.size(0), 1, tokens, tokens}, mask.options().dtype(torch::kFloat32))
      .masked_fill_(mask.unsqueeze(1).unsqueeze(1) == 0, std::numeric_limits<float>::lowest())
      .masked_fill_(later, std::numeric_limits<float>::lowest());
}

torch::Tensor AttendByScores(torch::Tensor scores, const torch::Tensor& value,
                             const torch::Tensor& bias, const ScoreOptions& options) {
  // In place: the product's backward does not look at its result.
  scores.mul_(options.scale);
  if (bias.defined()) scores.add_(bias);
  const torch::Tensor probabilities = at::softmax(scores, /*dim=*/-1);
  scores.reset();
  return at::matmul(Dropout(probabilities, options.dropout, /*training=*/true), value);
}

namespace {

// In the order of torch's sdp::SDPBackend.
constexpr std::array<memory::AttentionKernel, 4> kKernels = {
    memory::AttentionKernel::kMath, memory::AttentionKernel::kFlash,
    memory::AttentionKernel::kEfficient, memory::AttentionKernel::kCudnn};

// What torch would run for these, by their types and layouts.
memory::AttentionKernel KernelOf(const torch::Tensor& query, const torch::Tensor& key,
                                 const torch::Tensor& value,
                                 const std::optional<torch::Tensor>& bias, double dropout) {
  const int64_t choice = at::_fused_sdp_choice(query, key, value, bias, dropout);
  return choice >= 0 && choice < std::ssize(kKernels) ? kKernels[static_cast<size_t>(choice)]
                                                      : memory::AttentionKernel::kMath;
}

// `x` in the type in which attention takes it under autocast; its values are no longer its own, and
// nothing is allocated.
torch::Tensor InComputedType(const torch::Tensor& x) {
  const torch::DeviceType device = x.device().type();
  if (!at::autocast::is_autocast_enabled(device)) return x;
  const torch::ScalarType type = at::autocast::get_autocast_dtype(device);
  if (x.scalar_type() == type) return x;
  return x.detach().view(type).narrow(-1, 0, x.size(-1));
}

// Whether torch has a kernel that does not write the scores out. Where it has none we write them:
// that takes less than torch's own way, which computes 16-bit attention in float32.
bool IsFused(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
             const std::optional<torch::Tensor>& bias, double dropout) {
  if (query.device().is_cpu()) return dropout == 0.0;
  const auto computed_bias = bias.has_value() ? std::optional(InComputedType(*bias)) : std::nullopt;
  return KernelOf(InComputedType(query), InComputedType(key), InComputedType(value), computed_bias,
                  dropout) != memory::AttentionKernel::kMath;
}

}  // namespace

torch::Tensor Attend(const torch::Tensor& query, const torch::Tensor& key,
                     const torch::Tensor& value, const torch::Tensor& bias, double dropout,
                     bool training) {
  const double probability = training ? dropout : 0.0;
  std::optional<torch::Tensor> expanded;
  const int64_t tokens = query.size(2);
  if (bias.defined()) expanded = bias.expand({-1, -1, tokens, tokens});
  if (IsFused(query, key, value, expanded, probability)) {
    return at::scaled_dot_product_attention(query, key, value, expanded, probability);
  }
  return AttendByScores(
      at::matmul(query, key.transpose(2, 3)), value, bias,
      {.scale = 1.0 / std::sqrt(static_cast<double>(query.size(3))), .dropout = probability});
}

namespace {

// Views of the groups' rows, each [1, tokens of the group, hidden].
std::vector<torch::Tensor> SplitGroups(const torch::Tensor& packed, const PackedRows& rows) {
  std::vector<int64_t> sizes;
  for (const RowGroup& group : rows) sizes.push_back(group.TotalTokens());
  return at::split_with_sizes(packed, sizes, /*dim=*/1);
}

torch::Tensor AttendByGroups(const torch::Tensor& query, const torch::Tensor& key,
                             const torch::Tensor& value, const PackedRows& rows,
                             const PackedAttention& options) {
  const std::vector<torch::Tensor> queries = SplitGroups(query, rows);
  const std::vector<torch::Tensor> keys = SplitGroups(key, rows);
  const std::vector<torch::Tensor> values = SplitGroups(value, rows);
  std::vector<torch::Tensor> attended;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto by_heads = [&options, &group = rows[i]](const torch::Tensor& x) {
      return x.view({group.rows, group.tokens, options.heads, -1}).transpose(1, 2);
    };
    attended.push_back(Attend(by_heads(queries[i]), by_heads(keys[i]), by_heads(values[i]),
                              /*bias=*/{}, options.dropout, /*training=*/true)
                           .transpose(1, 2)
                           .reshape(queries[i].sizes()));
  }
  return at::cat(attended, /*dim=*/1);
}

// Source: torch 2.11, aten/src/ATen/native/transformers/cuda/attention.cu.
torch::Tensor AttendFused(const torch::Tensor& query, const torch::Tensor& key,
                          const torch::Tensor& value, const PackedInput& packed,
                          const PackedAttention& options) {
  const auto by_heads = [&options](const torch::Tensor& x) {
    return x.view({1, x.size(1), options.heads, -1});
  };
  const int64_t longest = LongestRow(packed.rows);
  const auto kept = at::_efficient_attention_forward(
      by_heads(query), by_heads(key), by_heads(value), /*bias=*/{}, packed.offsets, packed.offsets,
      longest, longest, options.dropout, /*custom_mask_type=*/0,
      /*compute_log_sumexp=*/query.requires_grad() || key.requires_grad() || value.requires_grad());
  return std::get<0>(kept).view(query.sizes());
}

}  // namespace

torch::Tensor AttendPacked(const torch::Tensor& query, const torch::Tensor& key,
                           const torch::Tensor& value, const PackedInput& packed,
                           const PackedAttention& options) {
  const auto by_heads = [&options](const torch::Tensor& x) {
    return x.view({1, x.size(1), options.heads, -1}).transpose(1, 2);
  };
  // With a bias, any, torch's choice is not flash: it says whether the efficient kernel runs.
  const int64_t tokens = query.size(1);
  const torch::Tensor any_bias = query.detach().as_strided({1, 1, tokens, tokens}, {0, 0, 0, 1});
  const bool fused = query.is_cuda() && IsFused(by_heads(query), by_heads(key), by_heads(value),
                                                any_bias, options.dropout);
  return fused ? AttendFused(query, key, value, packed, options)
               : AttendByGroups(query, key, value, packed.rows, options);
}

memory::AttentionKernels AttentionKernelsOf(torch::Device device, double dropout) {
  const auto pair = [device, dropout](torch::ScalarType type) {
    const auto options = torch::TensorOptions(type).device(device);
    const torch::Tensor query = at::empty({2, 2, 16, 64}, options).requires_grad_();
    const torch::Tensor bias = at::empty({2, 1, 1, 16}, options).expand({-1, -1, 16, 16});
    return memory::AttentionPair{.plain = KernelOf(query, query, query, {}, dropout),
                                 .masked = KernelOf(query, query, query, bias, dropout)};
  };
  return {.float32 = pair(torch::kFloat32),
          .float16 = pair(torch::kFloat16),
          .bfloat16 = pair(torch::kBFloat16)};
}

}  // namespace hpo::trainer
