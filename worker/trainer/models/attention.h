// Scaled dot-product attention, with one path per case, chosen by us and not by torch, so that the
// memory it takes can be predicted.
#pragma once

#include <string>

#include "worker/trainer/torch_headers.h"

namespace hpo {

// What a position adds to the scores of those who look at it: 0 for a token, the most negative
// float for padding. mask: [batch, tokens] int64, 1 = token. Result: [batch, 1, 1, tokens] float32.
torch::Tensor AttentionBias(const torch::Tensor& mask);

// query, key, value: [batch, heads, tokens, head_size]; bias: see AttentionBias.
// Result: [batch, heads, tokens, head_size].
//
// With dropout, on a CPU: written out (torch's fused CPU kernel has no dropout). Per head and pair
// of tokens, 9 bytes are kept for backward: probabilities, their mask, dropped probabilities.
// Otherwise: at::scaled_dot_product_attention, whose fused kernels keep one float per head and
// token.
torch::Tensor Attend(const torch::Tensor& query, const torch::Tensor& key,
                     const torch::Tensor& value, const torch::Tensor& bias, double dropout,
                     bool training);

// Which kernel Attend takes on `device` while training with `dropout`: "flash", "efficient",
// "cudnn", or "math" where attention is written out. Runs a tiny example.
std::string AttentionKernel(torch::Device device, double dropout);

}  // namespace hpo
