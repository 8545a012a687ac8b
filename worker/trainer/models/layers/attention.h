// Scaled dot-product attention, with one path per case, chosen by us and not by torch, so that the
// memory it takes can be predicted.
#pragma once

#include "memory/trace/attention_kernels.h"
#include "worker/trainer/base/torch_headers.h"
#include "worker/trainer/models/layers/packed_input.h"

namespace hpo::trainer {

// What a position adds to the scores of those who look at it: 0 for a token, the most negative
// float for padding. mask: [batch, tokens] int64, 1 = token. Result: [batch, 1, 1, tokens] float32.
torch::Tensor AttentionBias(const torch::Tensor& mask);

// As AttentionBias, and nobody looks at what comes later. Result: [batch, 1, tokens, tokens].
torch::Tensor CausalBias(const torch::Tensor& mask);

struct ScoreOptions {
  double scale = 1.0;  // of the scores
  double dropout = 0.0;
};

// softmax(scale scores + bias) value, written out. scores: [batch, heads, tokens, tokens], changed
// in place; value: [batch, heads, tokens, head_size]; bias: see AttentionBias, undefined: none.
// Result: as value.
// Per score 4 bytes are kept for backward, or 9 with dropout: probabilities, their mask, dropped
// probabilities.
torch::Tensor AttendByScores(torch::Tensor scores, const torch::Tensor& value,
                             const torch::Tensor& bias, const ScoreOptions& options);

// query, key, value: [batch, heads, tokens, head_size]; bias: see AttentionBias, undefined: none.
// Result: [batch, heads, tokens, head_size].
//
// Where torch has no fused kernel AttendByScores: on a CPU with dropout, on older cards in
// bfloat16, for head sizes that its kernels do not take. Otherwise:
// at::scaled_dot_product_attention, whose fused kernels keep one float per head and token.
torch::Tensor Attend(const torch::Tensor& query, const torch::Tensor& key,
                     const torch::Tensor& value, const torch::Tensor& bias, double dropout,
                     bool training);

struct PackedAttention {
  int64_t heads = 1;
  double dropout = 0.0;  // in training
};

// As Attend, of rows without padding: each token looks at those of its own row. query, key, value
// and the result: [1, tokens, heads * head_size]. On a GPU torch's fused kernel of variable length,
// which keeps one float per row, head and token of the longest row; on a CPU Attend, once for each
// group of rows of one length.
torch::Tensor AttendPacked(const torch::Tensor& query, const torch::Tensor& key,
                           const torch::Tensor& value, const PackedInput& packed,
                           const PackedAttention& options);

// Which kernels Attend takes on a card while training with `dropout`, in each precision, without a
// mask and with one; nothing is run. See memory/trace/attention_kernels.h.
memory::AttentionKernels AttentionKernelsOf(torch::Device device, double dropout);

}  // namespace hpo::trainer
